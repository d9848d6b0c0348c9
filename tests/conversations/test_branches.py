"""The tree of messages: an edit is a sibling, a new answer is a sibling, nothing is changed in place."""

import asyncio

from asgiref.sync import sync_to_async

from conversations.models import Conversation, Message
from tests.api_client import text_of


def say(text):
    return f'@twin {{"text": "{text}"}}\nGo'


async def contents(client, conversation_id, branch="active"):
    status, page = await client.call("GET", f"/v1/conversations/{conversation_id}/messages?branch={branch}&limit=100")
    assert status == 200
    return [message["content"] for message in page["data"]]


async def test_naming_an_earlier_answer_starts_a_branch(alice, site):
    conversation_id = await alice.conversation()
    first = await alice.send(conversation_id, say("A"))
    await alice.send(conversation_id, say("B"))
    edited = await alice.send(conversation_id, say("C"), parent_id=first[0].data["message_id"])
    assert text_of(edited) == "C"
    assert await contents(alice, conversation_id) == [say("A"), "A", say("C"), "C"]
    assert sorted(await contents(alice, conversation_id, "all")) == sorted(
        [say("A"), "A", say("B"), "B", say("C"), "C"]
    )
    requests = (await sync_to_async(site.twin.report)())["requests"]
    body = (await sync_to_async(site.twin.request)(requests[-1]["number"]))["body"]
    assert say("B") not in [message["content"] for message in body["messages"]], "a sibling was shown to the model"


async def test_a_null_parent_makes_a_new_first_message(alice):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, say("A"))
    await alice.send(conversation_id, say("B"), parent_id=None)
    assert await contents(alice, conversation_id) == [say("B"), "B"]


async def test_regenerating_makes_a_sibling_under_the_same_question(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, say("A"))
    for _ in range(17):
        path = f"/v1/messages/{events[0].data['message_id']}/regenerate"
        status, sibling = await alice.call("POST", path, {"stream": False})
        assert status == 200
        assert sibling["parent_id"] == events[0].data["user_message_id"]
    every = await contents(alice, conversation_id, "all")
    assert len(every) == 19
    assert await contents(alice, conversation_id) == [say("A"), "A"]


async def test_the_shown_branch_can_be_chosen(alice):
    conversation_id = await alice.conversation()
    first = await alice.send(conversation_id, say("A"))
    await alice.send(conversation_id, say("B"), parent_id=None)
    path = f"/v1/conversations/{conversation_id}"
    status, changed = await alice.call("PATCH", path, {"active_message_id": first[0].data["message_id"]})
    assert (status, changed["active_message_id"]) == (200, first[0].data["message_id"])
    assert await contents(alice, conversation_id) == [say("A"), "A"]


async def test_after_a_branch_that_ends_in_a_question_the_next_message_follows_its_answer(alice):
    conversation_id = await alice.conversation()
    first = await alice.send(conversation_id, say("A"))
    path = f"/v1/conversations/{conversation_id}"
    status, _ = await alice.call("PATCH", path, {"active_message_id": first[0].data["user_message_id"]})
    assert status == 200
    await alice.send(conversation_id, say("B"))
    assert await contents(alice, conversation_id) == [say("A"), "A", say("B"), "B"]


async def test_a_second_message_waits_its_turn_with_a_clear_refusal(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 3000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token")
        path = f"/v1/conversations/{conversation_id}/messages"
        status, answer = await alice.call("POST", path, {"content": "And?"})
        assert (status, answer["error"]["code"]) == (409, "generation_in_progress")
        path = f"/v1/messages/{events[0].data['message_id']}/regenerate"
        status, answer = await alice.call("POST", path, {})
        assert (status, answer["error"]["code"]) == (409, "generation_in_progress")
        await alice.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")


async def test_two_tabs_that_send_at_once_make_no_accidental_branch(alice):
    conversation_id = await alice.conversation()
    path = f"/v1/conversations/{conversation_id}/messages"
    body = {"content": '@twin {"tokens": 50, "token_ms": 5}\nGo', "stream": False}
    answers = await asyncio.gather(*(alice.call("POST", path, body) for _ in range(8)))
    assert sorted(status for status, _ in answers) == [200] + [409] * 7
    assert len(await contents(alice, conversation_id, "all")) == 2


async def test_a_parent_must_be_an_answer(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, say("A"))
    path = f"/v1/conversations/{conversation_id}/messages"
    status, answer = await alice.call("POST", path, {"content": "x", "parent_id": events[0].data["user_message_id"]})
    assert (status, answer["error"]["param"]) == (422, "parent_id")


async def test_deleting_while_an_answer_is_written_leaves_nothing_behind(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 5000, "token_ms": 5}\nGo') as stream:
        await stream.until("token", 3)
        status, _ = await alice.call("DELETE", f"/v1/conversations/{conversation_id}")
        assert status == 204
        rest = await stream.rest()
    assert rest[-1].type == "done"
    await sync_to_async(site.twin.wait)(open=0)
    assert not await Conversation.objects.filter(pk=conversation_id).aexists()
    assert not await Message.objects.filter(conversation_id=conversation_id).aexists()


async def test_a_damaged_tree_shows_its_readable_part(alice):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, say("A"))
    second = await alice.send(conversation_id, say("B"))
    first_question = await Message.objects.filter(conversation_id=conversation_id).order_by("id").afirst()
    await Message.objects.filter(pk=first_question.pk).aupdate(parent_id=second[0].data["message_id"])
    assert await contents(alice, conversation_id) == [say("A"), "A", say("B"), "B"]
    await Conversation.objects.filter(pk=conversation_id).aupdate(active_message=None)
    assert (await contents(alice, conversation_id))[-1] == "B"
    assert text_of(await alice.send(conversation_id, say("C"))) == "C"
