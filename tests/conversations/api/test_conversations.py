"""`/v1/conversations`: shapes, changes, refusals."""

import re
from uuid import UUID, uuid4

import pytest

from tests.conversations.api.errors import error_of

FIELDS = {
    "conversation_id", "title", "model", "instructions", "pinned", "archived", "temporary", "active_message_id",
    "context", "created_at", "updated_at", "expires_at",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def test_a_new_conversation_has_the_documented_shape(dora):
    response = dora.post("/v1/conversations", {"title": "Trip", "model": "small", "instructions": "Be brief."})
    assert response.status_code == 201
    made = response.json()
    assert set(made) == FIELDS
    assert UUID(made["conversation_id"]).version == 7
    assert (made["title"], made["model"], made["instructions"]) == ("Trip", "small", "Be brief.")
    assert (made["pinned"], made["archived"], made["temporary"]) == (False, False, False)
    assert made["active_message_id"] is None
    assert made["context"] == {"used": 0, "limit": None, "summarised": False}
    assert TIME.fullmatch(made["created_at"])
    assert TIME.fullmatch(made["updated_at"])
    assert dora.get(f"/v1/conversations/{made['conversation_id']}").json() == made


@pytest.mark.parametrize("body", [None, {}])
def test_nothing_need_be_said_to_begin_a_conversation(dora, body):
    made = dora.post("/v1/conversations", body).json()
    assert (made["title"], made["model"], made["instructions"]) == ("", "auto", "")


def test_a_title_is_kept_as_it_was_written(dora):
    title = "  Größe \u2028 👩‍👩‍👧 "
    assert dora.post("/v1/conversations", {"title": title}).json()["title"] == title


def test_a_change_touches_only_what_it_names(dora):
    conversation_id = dora.conversation(title="Trip", instructions="Be brief.")
    path = f"/v1/conversations/{conversation_id}"
    before = dora.get(path).json()
    for change in ({"title": "Journey"}, {"pinned": True}, {"archived": True}, {"model": "small"}, {"title": ""}, {}):
        changed = dora.patch(path, change)
        assert changed.status_code == 200
        before |= change
        assert changed.json() == before
        assert dora.get(path).json() == before


def test_a_change_that_is_refused_changes_nothing(dora):
    conversation_id = dora.conversation(title="Trip")
    path = f"/v1/conversations/{conversation_id}"
    before = dora.get(path).json()
    error_of(dora.patch(path, {"title": "New", "pinned": "yes"}), 422, "invalid_request")
    error_of(dora.patch(path, {"title": "New", "model": "none-such"}), 404, "not_found")
    error_of(dora.patch(path, {"title": "New", "active_message_id": str(uuid4())}), 422, "invalid_request")
    assert dora.get(path).json() == before


def test_a_deleted_conversation_is_gone(dora):
    path = f"/v1/conversations/{dora.conversation()}"
    response = dora.call("DELETE", path)
    assert (response.status_code, response.content) == (204, b"")
    for method in ("GET", "PATCH", "DELETE"):
        error_of(dora.call(method, path, {}), 404, "not_found")
    error_of(dora.get(f"{path}/messages"), 404, "not_found")
    error_of(dora.post(f"{path}/messages", {"content": "Hello"}), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"title": 5}, "title"),
        ({"title": None}, "title"),
        ({"title": ["a"]}, "title"),
        ({"title": "t" * 201}, "title"),
        ({"title": "nul\x00"}, "title"),
        ({"instructions": "i" * 20_001}, "instructions"),
        ({"model": 5}, "model"),
        ({"titel": "typo"}, "titel"),
        ({"id": str(uuid4())}, "id"),
        ({"conversation_id": str(uuid4())}, "conversation_id"),
        ({"user": "somebody"}, "user"),
        ({"temporary": "yes"}, "temporary"),
        ([], "body"),
        ("text", "body"),
        (7, "body"),
        (b"null", "body"),
    ],
)
def test_a_faulty_request_names_the_field(dora, body, param):
    body = f'"{body}"' if body == "text" else body
    for response in (
        dora.post("/v1/conversations", body),
        dora.patch(f"/v1/conversations/{dora.conversation()}", body),
    ):
        error = error_of(response, 422, "invalid_request")
        assert error["type"] == "invalid_request_error"
        assert error["param"] == param
        assert list(error["details"]) == [param]
        assert param in error["message"]


@pytest.mark.parametrize("value", ["yes", "true", 1, 0, None, []])
def test_only_true_and_false_are_truth_values(dora, value):
    error = error_of(dora.patch(f"/v1/conversations/{dora.conversation()}", {"pinned": value}), 422, "invalid_request")
    assert error["param"] == "pinned"


def test_all_faulty_fields_are_named_at_once(dora):
    error = error_of(dora.post("/v1/conversations", {"title": 5, "model": 5}), 422, "invalid_request")
    assert set(error["details"]) == {"title", "model"}


def test_an_unknown_model_is_answered_with_those_there_are(dora):
    error = error_of(dora.post("/v1/conversations", {"model": "gpt-9"}), 404, "not_found")
    assert error["param"] == "model"
    assert error["details"]["allowed"] == ["auto", "large", "small"]
