"""One key, one generation, one charge; however often and however much at once."""

import asyncio
from datetime import timedelta

from asgiref.sync import sync_to_async
from django.utils import timezone

from accounts.models import UsageRecord
from conversations.models import Generation, IdempotencyKey, Message
from conversations.tasks import delete_expired_idempotency_keys
from tests.api_client import ApiClient, text_of

QUESTION = '@twin {"text": "Once."}\nGo'
KEY = {"Idempotency-Key": "draft-1"}


async def test_fifty_equal_posts_at_once_make_one_message_and_one_generation(charlie, site):
    conversation_id = await charlie.conversation()
    answers = await asyncio.gather(*(charlie.send(conversation_id, QUESTION, headers=KEY) for _ in range(50)))
    assert {events[0].data["generation_id"] for events in answers} == {answers[0][0].data["generation_id"]}
    assert {text_of(events) for events in answers} == {"Once."}
    assert await Message.objects.filter(conversation_id=conversation_id).acount() == 2
    assert await Generation.objects.acount() == 1
    assert await UsageRecord.objects.acount() == 1
    report = await sync_to_async(site.twin.wait)(open=0)
    assert len([r for r in report["requests"] if r["path"] == "/v1/chat/completions"]) == 1
    status, limits = await charlie.call("GET", "/v1/limits")
    assert status == 200
    assert limits["data"][0]["used"] == 1


async def test_the_same_key_with_another_body_is_a_conflict(alice):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, QUESTION, headers=KEY)
    path = f"/v1/conversations/{conversation_id}/messages"
    status, answer = await alice.call("POST", path, {"content": "Something else"}, **KEY)
    assert (status, answer["error"]["code"]) == (409, "idempotency_conflict")


async def test_a_repeated_call_after_the_end_gets_the_finished_answer(alice):
    conversation_id = await alice.conversation()
    first = await alice.send(conversation_id, QUESTION, headers=KEY)
    again = await alice.send(conversation_id, QUESTION, headers=KEY)
    assert text_of(again) == "Once."
    assert again[-1] == first[-1]


async def test_two_people_may_use_the_same_key(alice, charlie):
    texts = []
    for client in (alice, charlie):
        texts.append(text_of(await client.send(await client.conversation(), QUESTION, headers=KEY)))
    assert texts == ["Once.", "Once."]
    assert await Generation.objects.acount() == 2


async def test_a_key_is_forgotten_after_a_day(alice):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, QUESTION, headers=KEY)
    await IdempotencyKey.objects.aupdate(created_at=timezone.now() - timedelta(hours=25))
    events = await alice.send(conversation_id, '@twin {"text": "Twice."}\nGo', headers=KEY)
    assert text_of(events) == "Twice."


async def test_old_keys_are_deleted_in_the_background(alice):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, QUESTION, headers=KEY)
    await IdempotencyKey.objects.aupdate(created_at=timezone.now() - timedelta(hours=25))
    assert [await sync_to_async(delete_expired_idempotency_keys)() for _ in range(2)] == [1, 0]


async def test_a_refused_call_leaves_its_key_free(alice):
    conversation_id = await alice.conversation()
    path = f"/v1/conversations/{conversation_id}/messages"
    status, _ = await alice.call("POST", path, {"content": "hi", "model": "gigantic"}, **KEY)
    assert status == 404
    assert text_of(await alice.send(conversation_id, QUESTION, headers=KEY)) == "Once."


async def test_a_key_that_is_too_long_is_refused(alice: ApiClient):
    conversation_id = await alice.conversation()
    path = f"/v1/conversations/{conversation_id}/messages"
    status, answer = await alice.call("POST", path, {"content": "hi"}, **{"Idempotency-Key": "k" * 256})
    assert (status, answer["error"]["param"]) == (422, "Idempotency-Key")


async def test_regenerating_twice_with_one_key_makes_one_sibling(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, QUESTION)
    path = f"/v1/messages/{events[0].data['message_id']}/regenerate"
    made = [await alice.call("POST", path, {"stream": False}, **KEY) for _ in range(2)]
    assert [status for status, _ in made] == [200, 200]
    assert made[0][1]["message_id"] == made[1][1]["message_id"]
    assert await Message.objects.filter(conversation_id=conversation_id).acount() == 3
