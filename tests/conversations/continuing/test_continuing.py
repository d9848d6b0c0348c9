"""An answer that was cut off goes on in a new message, which holds only the text that continues it."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from conversations.models import Generation, Message
from tests.api_client import text_of

STORY = '@twin {"text": "Once upon a time there was a king."}\nGo'


async def cut_off(client, conversation_id, content=STORY, *, tokens=3):
    """Return the start event's data of an answer that reached its longest length."""
    events = await client.send(conversation_id, content, options={"max_tokens": tokens, "temperature": 0.5})
    assert events[-1].data["finish_reason"] == "length"
    return events[0].data


async def go_on(client, message_id, body=None, **headers):
    path = f"/v1/messages/{message_id}/continue"
    return await client.call("POST", path, {"stream": False} if body is None else body, **headers)


async def test_a_continuation_is_a_new_message_with_the_rest_of_the_text(alice):
    conversation_id = await alice.conversation()
    start = await cut_off(alice, conversation_id)
    status, rest = await go_on(alice, start["message_id"])
    assert status == 200
    assert (rest["parent_id"], rest["finish_reason"]) == (start["message_id"], "stop")
    partial = await Message.objects.aget(pk=start["message_id"])
    assert partial.content
    assert rest["content"]
    assert partial.content + rest["content"] == "Once upon a time there was a king."
    assert partial.finish_reason == "length", "the answer that was cut off stays as it was"
    _, conversation = await alice.call("GET", f"/v1/conversations/{conversation_id}")
    assert conversation["active_message_id"] == rest["message_id"]


async def test_a_stopped_answer_goes_on_as_well(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 300, "token_ms": 10}\nGo') as stream:
        events = await stream.until("token", 3)
        await alice.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")
        await stream.rest()
    status, rest = await go_on(alice, events[0].data["message_id"], {"stream": False, "options": {"max_tokens": 2}})
    assert (status, rest["finish_reason"]) == (200, "length")


async def test_the_stream_of_a_continuation_names_the_question(alice, http):
    conversation_id = await alice.conversation()
    start = await cut_off(alice, conversation_id)
    path = f"/v1/messages/{start['message_id']}/continue"
    status, first = await go_on(alice, start["message_id"], {"stream": False, "options": {"max_tokens": 2}})
    assert status == 200
    status, second = await go_on(alice, first["message_id"])
    assert status == 200
    for message_id in (first["message_id"], second["message_id"]):
        events = await alice.follow(message_id)
        assert events[0].data["user_message_id"] == start["user_message_id"]
        assert events[0].data["message_id"] == message_id
    async with http.post(alice.url + path, json={}, headers=alice.headers) as response:
        assert response.content_type == "text/event-stream"
        body = (await response.read()).decode()
    assert f'"user_message_id":"{start["user_message_id"]}"' in body


async def test_the_model_is_asked_to_go_on_with_its_own_text(alice, site):
    start = await cut_off(alice, await alice.conversation())
    partial = await Message.objects.aget(pk=start["message_id"])
    await go_on(alice, start["message_id"])
    requests = (await sync_to_async(site.twin.report)())["requests"]
    body = (await sync_to_async(site.twin.request)(requests[-1]["number"]))["body"]
    assert body["messages"][-2:] == [
        {"role": "user", "content": STORY},
        {"role": "assistant", "content": partial.content},
    ]


async def test_what_is_said_next_follows_the_continuation(alice):
    conversation_id = await alice.conversation()
    start = await cut_off(alice, conversation_id)
    _, rest = await go_on(alice, start["message_id"])
    events = await alice.send(conversation_id, '@twin {"text": "Bye"}\nThanks')
    question = await Message.objects.aget(pk=events[0].data["user_message_id"])
    assert str(question.parent_id) == rest["message_id"]


async def test_after_a_branch_that_ends_in_a_question_the_next_message_follows_the_whole_answer(alice):
    conversation_id = await alice.conversation()
    start = await cut_off(alice, conversation_id)
    _, rest = await go_on(alice, start["message_id"])
    shown = {"active_message_id": start["user_message_id"]}
    assert (await alice.call("PATCH", f"/v1/conversations/{conversation_id}", shown))[0] == 200
    events = await alice.send(conversation_id, '@twin {"text": "Bye"}\nThanks')
    question = await Message.objects.aget(pk=events[0].data["user_message_id"])
    assert str(question.parent_id) == rest["message_id"]


async def test_an_answer_goes_on_as_it_was_written_but_for_its_length(alice):
    start = await cut_off(alice, await alice.conversation())
    _, rest = await go_on(alice, start["message_id"])
    options = (await Generation.objects.aget(pk=rest["message_id"])).options
    assert options["temperature"] == 0.5
    assert options["max_tokens"] > 3


async def test_regenerating_a_continuation_makes_a_sibling_continuation(alice):
    start = await cut_off(alice, await alice.conversation())
    _, rest = await go_on(alice, start["message_id"])
    status, other = await alice.call("POST", f"/v1/messages/{rest['message_id']}/regenerate", {"stream": False})
    assert (status, other["parent_id"], other["content"]) == (200, start["message_id"], rest["content"])
    assert other["message_id"] != rest["message_id"]


async def test_the_same_key_makes_one_continuation(alice):
    start = await cut_off(alice, await alice.conversation())
    key = {"Idempotency-Key": "once"}
    answers = [await go_on(alice, start["message_id"], **key) for _ in range(2)]
    assert answers[0] == answers[1]
    assert await Message.objects.filter(parent_id=start["message_id"]).acount() == 1
    status, answer = await go_on(alice, start["message_id"], {"stream": False, "options": {"seed": 1}}, **key)
    assert (status, answer["error"]["code"]) == (409, "idempotency_conflict")


async def test_of_two_at_once_one_is_told_that_it_goes_on_already(alice):
    slow = '@twin {"tokens": 40, "token_ms": 20}\nGo'
    start = await cut_off(alice, await alice.conversation(), slow)
    answers = await asyncio.gather(*(go_on(alice, start["message_id"]) for _ in range(2)))
    assert sorted(status for status, _ in answers) == [200, 409]
    assert await Message.objects.filter(parent_id=start["message_id"]).acount() == 1
    assert (await go_on(alice, start["message_id"]))[0] == 200, "once that has ended, another may be made beside it"


async def test_an_answer_under_way_is_not_continued(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 3000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token")
        status, answer = await go_on(alice, events[0].data["message_id"])
        assert (status, answer["error"]["code"]) == (409, "generation_in_progress")
        await alice.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")


async def test_what_came_to_its_end_is_not_continued(alice):
    conversation_id = await alice.conversation()
    start = (await alice.send(conversation_id, '@twin {"text": "All."}\nGo'))[0].data
    for message_id in (start["message_id"], start["user_message_id"]):
        status, answer = await go_on(alice, message_id)
        assert (status, answer["error"]["param"]) == (422, "message_id")
        assert "can be continued" in answer["error"]["message"]


async def test_an_answer_without_text_is_not_continued(alice):
    conversation_id = await alice.conversation()
    start = await cut_off(alice, conversation_id)
    await Message.objects.filter(pk=start["message_id"]).aupdate(content=" \n")
    status, answer = await go_on(alice, start["message_id"])
    assert (status, answer["error"]["param"]) == (422, "message_id")
    assert "no text" in answer["error"]["message"]


async def test_an_answer_to_which_there_is_nothing_to_add_ends_there(alice):
    start = await cut_off(alice, await alice.conversation())
    await Message.objects.filter(pk=start["message_id"]).aupdate(content="Once upon a time there was a king.")
    status, rest = await go_on(alice, start["message_id"])
    assert (status, rest["content"], rest["finish_reason"]) == (200, "", "stop")


@pytest.mark.parametrize("body", [{"content": "x"}, {"model": "small"}, {"options": {"tokens": 1}}, {"stream": "no"}])
async def test_a_faulty_body_is_refused(alice, body):
    start = await cut_off(alice, await alice.conversation())
    status, answer = await go_on(alice, start["message_id"], body)
    assert (status, answer["error"]["code"]) == (422, "invalid_request")


async def test_a_strangers_answer_is_not_found(alice, charlie):
    start = await cut_off(alice, await alice.conversation())
    status, answer = await go_on(charlie, start["message_id"])
    assert (status, answer["error"]["code"]) == (404, "not_found")
    assert await Message.objects.filter(parent_id=start["message_id"]).acount() == 0


async def test_a_continuation_counts_as_a_request_and_is_paid_by_itself(alice):
    start = await cut_off(alice, await alice.conversation())
    before = (await alice.call("GET", "/v1/limits"))[1]
    _, rest = await go_on(alice, start["message_id"])
    after = (await alice.call("GET", "/v1/limits"))[1]
    assert before != after
    assert 0 < rest["usage"]["out"] < 20
    events = await alice.follow(start["message_id"])
    assert text_of(events) == (await Message.objects.aget(pk=start["message_id"])).content
