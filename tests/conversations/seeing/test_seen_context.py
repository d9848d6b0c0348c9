"""What the model saw, as its owner is told at `/v1/generations/{generation_id}/context`."""

import pytest

from conversations.models import Generation, Memory, Summary
from foundation.ids import new_id
from tests.accounts.factories import bearer, make_key, make_user

pytestmark = pytest.mark.django_db


def context_of(client, message, user):
    return client.get(f"/v1/generations/{message.id}/context", headers=bearer(make_key(user, ["read"])))


def test_the_owner_sees_every_part_with_its_tokens(client, alice, trimmed):
    response = context_of(client, trimmed[15], alice)
    assert response.status_code == 200
    body = response.json()
    assert (body["generation_id"], body["conversation_id"]) == (str(trimmed[15].id), str(trimmed[15].conversation_id))
    seen = body["context"]
    assert [seen[name] for name in ("tokenizer", "exact", "window", "budget", "total")] == ["tok", True, 200, 150, 120]
    assert seen["site_instructions"] == {"tokens": 7}, "the operator's text is not told"
    assert seen["user_instructions"] == {"tokens": 4, "text": "Call me Al."}
    assert seen["instructions"] == {"tokens": 3, "text": "Be brief."}
    memory = Memory.objects.get()
    assert seen["memories"][0] == {"memory_id": str(memory.id), "tokens": 5, "text": "Likes tea.", "deleted": False}
    assert (seen["memories"][1]["text"], seen["memories"][1]["deleted"]) == (None, True)
    assert (seen["summary"]["epoch"], seen["summary"]["tokens"]) == (3, 9)
    assert (seen["summary"]["text"], seen["summary"]["covers_up_to"]) == ("They planned a party.", str(trimmed[9].id))
    assert seen["dropped"] == {
        "count": 8, "first_message_id": str(trimmed[2].id), "last_message_id": str(trimmed[9].id)
    }  # fmt: skip
    assert seen["passages"] == {"kept": 2, "dropped": 1}
    kept = [trimmed[place] for place in (0, 1, 10, 11, 13, 14)]
    assert (seen["kept"]["count"], seen["kept"]["tokens"]) == (6, 60)
    assert seen["kept"]["messages"] == [
        {"message_id": str(each.id), "role": each.role, "tokens": 10} for each in kept
    ], "and not the one that says nothing, nor the answer itself"


def test_what_was_never_kept_is_null(client, alice, trimmed):
    response = context_of(client, trimmed[1], alice)
    assert (response.status_code, response.json()["context"]) == (200, None)
    Generation.objects.filter(pk=trimmed[1].id).update(context={"tokenizer": "damaged"})
    assert context_of(client, trimmed[1], alice).json()["context"] is None


def test_where_nothing_was_left_out_the_whole_path_was_seen(client, alice, trimmed):
    stored = Generation.objects.get(pk=trimmed[15].id).context
    stored |= {"head_up_to": None, "dropped_up_to": None, "tail_from": None, "summary": None, "messages_dropped": 0}
    Generation.objects.filter(pk=trimmed[5].id).update(context=stored)
    seen = context_of(client, trimmed[5], alice).json()["context"]
    assert [each["message_id"] for each in seen["kept"]["messages"]] == [str(each.id) for each in trimmed[:5]]
    assert seen["dropped"] == {"count": 0, "first_message_id": None, "last_message_id": None}
    assert seen["summary"] is None


def test_a_summary_that_is_gone_leaves_its_place(client, alice, trimmed):
    Summary.objects.all().delete()
    summary = context_of(client, trimmed[15], alice).json()["context"]["summary"]
    assert (summary["epoch"], summary["text"], summary["covers_up_to"]) == (3, None, None)


def test_a_stranger_finds_nothing(client, trimmed):
    stranger = make_user("mallory@example.com")
    response = context_of(client, trimmed[15], stranger)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert context_of(client, trimmed[15], stranger).json() == context_of(client, type(trimmed[0])(), stranger).json()


def test_a_key_that_may_not_read_is_refused(client, alice, trimmed):
    key = bearer(make_key(alice, ["chat", "write"]))
    for path in (f"generations/{trimmed[15].id}", f"conversations/{trimmed[15].conversation_id}"):
        assert client.get(f"/v1/{path}/context", headers=key).status_code == 403


def test_only_its_owner_sees_a_conversations_cost(client, trimmed):
    key = bearer(make_key(make_user("mallory@example.com")))
    for conversation_id in (trimmed[0].conversation_id, new_id()):
        assert client.get(f"/v1/conversations/{conversation_id}/context", headers=key).status_code == 404
