"""`/v1/memories` and `/v1/preferences`, as programs call them."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from conversations.models import Memory
from conversations.services import memories
from tests.accounts.factories import bearer, make_key, make_user
from tests.conversations.api.conftest import Caller
from tests.conversations.api.errors import error_of

pytestmark = pytest.mark.django_db
NOWHERE = UUID(int=1)
FIELDS = {
    "memory_id", "content", "origin", "enabled", "conversation_id", "message_id", "created_at", "updated_at",
    "confirmed_at", "reviewed_at", "expires_at", "needs_review",
}  # fmt: skip


@pytest.fixture
def dora(client):
    return Caller(client, make_user("dora@example.com"))


@pytest.fixture
def charlie(client):
    return Caller(client, make_user("charlie@example.com"))


def remembered(caller, content="I am vegan", **fields):
    response = caller.post("/v1/memories", {"content": content, **fields})
    assert response.status_code == 201, response.text
    return response.json()


def path_of(memory):
    return f"/v1/memories/{memory['memory_id']}"


def proposed_to(caller, content="Has a cat"):
    conversation_id = caller.conversation()
    message = caller.user.conversations.get(pk=conversation_id).messages.create(role="assistant", content="Meow")
    return memories.propose(user=caller.user, content=content, message=message)


def test_a_memory_has_the_documented_shape(dora):
    made = remembered(dora)
    assert set(made) == FIELDS
    assert UUID(made["memory_id"]).version == 7
    assert (made["content"], made["origin"], made["enabled"], made["needs_review"]) == (
        "I am vegan", "written", True, False,
    )  # fmt: skip
    assert made["confirmed_at"].endswith("Z")
    assert (made["conversation_id"], made["message_id"], made["expires_at"]) == (None, None, None)
    assert dora.get("/v1/memories").json() == {"data": [made], "next_cursor": None}


def test_what_is_remembered_already_is_answered_with_200_and_is_the_same(dora):
    made = remembered(dora)
    again = dora.post("/v1/memories", {"content": "i am VEGAN."})
    assert (again.status_code, again.json()) == (200, made)


def test_the_list_comes_in_pages_newest_first_with_proposals(dora):
    ids = [remembered(dora, f"Fact number {number}")["memory_id"] for number in range(4)]
    ids.append(str(proposed_to(dora).id))
    first = dora.get("/v1/memories?limit=3").json()
    second = dora.get(f"/v1/memories?limit=3&cursor={first['next_cursor']}").json()
    assert [memory["memory_id"] for memory in first["data"] + second["data"]] == ids[::-1]
    assert second["next_cursor"] is None
    assert first["data"][0]["confirmed_at"] is None
    error_of(dora.get("/v1/memories?limit=0"), 422, "invalid_request")
    error_of(dora.get("/v1/memories?cursor=nonsense"), 422, "invalid_request")


def test_a_change_touches_only_what_it_names(dora):
    made = remembered(dora)
    tomorrow = (timezone.now() + timedelta(days=1)).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    for change in ({"content": "I eat fish"}, {"enabled": False}, {"expires_at": tomorrow}, {"expires_at": None}, {}):
        changed = dora.patch(path_of(made), change)
        assert changed.status_code == 200, changed.text
        assert {name: changed.json()[name] for name in change} == change
        kept = FIELDS - set(change) - {"updated_at", "reviewed_at"}
        assert {name: changed.json()[name] for name in kept} == {name: made[name] for name in kept}
        made = changed.json()


def test_an_old_memory_is_reviewed(dora):
    made = remembered(dora)
    Memory.objects.update(reviewed_at=timezone.now() - timedelta(days=181))
    assert dora.get("/v1/memories").json()["data"][0]["needs_review"]
    assert not dora.patch(path_of(made), {"reviewed": True}).json()["needs_review"]


def test_a_proposal_is_accepted_or_deleted(dora):
    accepted, declined = proposed_to(dora), proposed_to(dora, "Has a dog")
    answer = dora.patch(f"/v1/memories/{accepted.id}", {"confirmed": True}).json()
    assert answer["confirmed_at"] is not None
    assert (answer["origin"], answer["message_id"]) == ("proposed", str(accepted.message_id))
    assert dora.call("DELETE", f"/v1/memories/{declined.id}").status_code == 204
    assert [memory["content"] for memory in dora.get("/v1/memories").json()["data"]] == ["Has a cat"]


def test_a_deleted_memory_is_gone(dora):
    made = remembered(dora)
    response = dora.call("DELETE", path_of(made))
    assert (response.status_code, response.content) == (204, b"")
    assert dora.get("/v1/memories").json()["data"] == []
    error_of(dora.call("DELETE", path_of(made)), 404, "not_found")
    error_of(dora.patch(path_of(made), {"content": "I am vegan"}), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": 5}, "content"),
        ({"content": "nul\x00"}, "content"),
        ({"content": "a" * 5000}, "content"),
        ({"content": "fine", "expires_at": "tomorrow"}, "expires_at"),
        ({"content": "fine", "expires_at": "2020-01-31T12:00:00Z"}, "expires_at"),
        ({"content": "fine", "enabled": True}, "enabled"),
        ({"content": "fine", "user": str(uuid4())}, "user"),
    ],
)
def test_a_faulty_memory_is_refused_and_names_the_field(dora, body, param):
    assert error_of(dora.post("/v1/memories", body), 422, "invalid_request")["param"] == param
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"content": ""}, "content"),
        ({"enabled": "yes"}, "enabled"),
        ({"confirmed": False}, "confirmed"),
        ({"reviewed": False}, "reviewed"),
        ({"reviewed": None}, "reviewed"),
        ({"origin": "asked"}, "origin"),
        ({"expires_at": "2020-01-31T12:00:00Z"}, "expires_at"),
    ],
)
def test_a_faulty_change_is_refused_and_changes_nothing(dora, body, param):
    made = remembered(dora)
    assert error_of(dora.patch(path_of(made), body), 422, "invalid_request")["param"] == param
    assert dora.get("/v1/memories").json()["data"] == [made]


def test_one_too_many_is_refused_with_the_numbers(dora, settings):
    settings.MOST_MEMORIES = 1
    remembered(dora)
    error = error_of(dora.post("/v1/memories", {"content": "I am tall"}), 422, "invalid_request")
    assert (error["param"], error["message"]) == ("content", "You have 1 memories; 1 are allowed. Delete one first.")
    assert list(error["details"]) == ["content"]


def test_a_strangers_memory_looks_like_one_that_is_not_there(dora, charlie):
    made = remembered(dora)
    for method, body in (("PATCH", {"enabled": False}), ("PATCH", {"no": 1}), ("DELETE", None)):
        theirs = charlie.call(method, path_of(made), body)
        nowhere = charlie.call(method, f"/v1/memories/{uuid4()}", body)
        error_of(theirs, 404, "not_found")
        assert theirs.json() == nowhere.json()
    assert charlie.get("/v1/memories").json()["data"] == []
    assert dora.get("/v1/memories").json()["data"] == [made]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/v1/memories", "read"),
        ("POST", "/v1/memories", "write"),
        ("PATCH", f"/v1/memories/{NOWHERE}", "write"),
        ("DELETE", f"/v1/memories/{NOWHERE}", "write"),
        ("GET", "/v1/preferences", "read"),
        ("PATCH", "/v1/preferences", "write"),
    ],
)
def test_a_key_needs_the_scope(client, dora, method, path, scope):
    key = make_key(dora.user, sorted({"chat", "read", "write", "account"} - {scope}))
    error_of(client.generic(method, path, b"{}", "application/json", headers=bearer(key)), 403, "scope_missing")
    error_of(client.generic(method, path, b"{}", "application/json"), 401, "not_authenticated")


def test_preferences_hold_what_was_set_and_nothing_else_changes(dora, charlie):
    assert dora.get("/v1/preferences").json() == {"instructions": "", "uses_memories": True}
    changed = dora.patch("/v1/preferences", {"instructions": "Be brief."})
    assert changed.json() == {"instructions": "Be brief.", "uses_memories": True}
    assert dora.patch("/v1/preferences", {"uses_memories": False}).json()["instructions"] == "Be brief."
    assert dora.patch("/v1/preferences", {}).json() == {"instructions": "Be brief.", "uses_memories": False}
    assert dora.get("/v1/preferences").json() == {"instructions": "Be brief.", "uses_memories": False}
    assert charlie.get("/v1/preferences").json() == {"instructions": "", "uses_memories": True}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"instructions": "i" * 20_001}, "instructions"),
        ({"instructions": None}, "instructions"),
        ({"instructions": "nul\x00"}, "instructions"),
        ({"uses_memories": "no"}, "uses_memories"),
        ({"use_memories": False}, "use_memories"),
    ],
)
def test_faulty_preferences_are_refused(dora, body, param):
    assert error_of(dora.patch("/v1/preferences", body), 422, "invalid_request")["param"] == param
    assert dora.get("/v1/preferences").json() == {"instructions": "", "uses_memories": True}
