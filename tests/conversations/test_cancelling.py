"""Stop works in every phase: the model server's connection closes, and what was shown is what is stored."""

import asyncio
import json
import signal

from asgiref.sync import sync_to_async

from conversations.models import Generation, Message
from tests.api_client import text_of


async def closed_by_the_client(site):
    report = await sync_to_async(site.twin.wait)(open=0)
    chats = [r for r in report["requests"] if r["path"] == "/v1/chat/completions"]
    return [chat["closed_by"] for chat in chats]


async def cancel(client, generation_id):
    status, answer = await client.call("POST", f"/v1/generations/{generation_id}/cancel")
    assert (status, answer) == (204, None)


async def assert_stored_is_what_was_shown(events):
    message = await Message.objects.select_related("generation").aget(pk=events[0].data["message_id"])
    assert message.content == text_of(events)
    assert (message.status, message.finish_reason) == ("cancelled", "cancelled")
    assert message.generation.status == "cancelled"
    assert events[-1].type == "done"
    assert events[-1].data["finish_reason"] == "cancelled"
    return message


async def test_stopping_in_the_middle_keeps_what_was_written(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 2000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token", 5)
        await cancel(alice, events[0].data["generation_id"])
        events += await stream.rest()
    message = await assert_stored_is_what_was_shown(events)
    assert message.tokens_out > 0
    assert await closed_by_the_client(site) == ["client"]


async def test_stopping_before_the_first_token_stores_an_empty_answer(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"prefill_ms": 20000}\nGo') as stream:
        start = await stream.next()
        await sync_to_async(site.twin.wait)(open=1)
        await cancel(alice, start.data["generation_id"])
        events = [start, *await stream.rest()]
    assert text_of(events) == ""
    await assert_stored_is_what_was_shown(events)
    assert await closed_by_the_client(site) == ["client"]


async def test_stopping_while_the_server_sends_no_headers(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"fault": {"kind": "stall_headers"}}\nGo') as stream:
        start = await stream.next()
        await sync_to_async(site.twin.wait)(open=1)
        await cancel(alice, start.data["generation_id"])
        await assert_stored_is_what_was_shown([start, *await stream.rest()])
    assert await closed_by_the_client(site) == ["client"]


async def test_stopping_at_the_last_token_ends_one_way_or_the_other(alice, site):
    for pause_ms in range(0, 40, 4):
        conversation_id = await alice.conversation()
        async with alice.sending(conversation_id, '@twin {"tokens": 6, "token_ms": 5}\nGo') as stream:
            events = [await stream.next()]
            await asyncio.sleep(pause_ms / 1000)
            await cancel(alice, events[0].data["generation_id"])
            events += await stream.rest()
        message = await Message.objects.aget(pk=events[0].data["message_id"])
        assert message.content == text_of(events)
        assert message.finish_reason == events[-1].data["finish_reason"]
        assert (message.status, message.finish_reason) in [("cancelled", "cancelled"), ("complete", "stop")]
    assert (await sync_to_async(site.twin.wait)(open=0))["open"] == 0


async def test_stopping_twice_or_after_the_end_changes_nothing(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, '@twin {"text": "Done."}\nGo')
    generation_id = events[0].data["generation_id"]
    await cancel(alice, generation_id)
    await cancel(alice, generation_id)
    generation = await Generation.objects.aget(pk=generation_id)
    assert (generation.status, generation.finish_reason) == ("complete", "stop")


async def test_many_stops_at_once_make_one_end(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 2000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token", 3)
        await asyncio.gather(*(cancel(alice, events[0].data["generation_id"]) for _ in range(10)))
        events += await stream.rest()
    await assert_stored_is_what_was_shown(events)
    assert [event.type for event in events].count("done") == 1


async def test_a_new_question_can_follow_a_stopped_answer_at_once(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 2000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token", 3)
        await cancel(alice, events[0].data["generation_id"])
        again = await alice.send(conversation_id, '@twin {"text": "Here."}\nAgain')
        await stream.rest()
    assert text_of(again) == "Here."
    question = await Message.objects.aget(pk=again[0].data["user_message_id"])
    assert str(question.parent_id) == events[0].data["message_id"]


async def test_a_reader_that_leaves_starts_the_grace_time(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 20000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token", 3)
    assert await closed_by_the_client(site) == ["client"]
    rest = await alice.follow(events[0].data["generation_id"], events[-1].id)
    await assert_stored_is_what_was_shown(events + rest)


async def test_a_reader_that_comes_back_in_time_keeps_the_answer_going(alice, site):
    conversation_id = await alice.conversation()
    question = f"@twin {json.dumps({'tokens': 400, 'token_ms': 5})}\nGo"
    async with alice.sending(conversation_id, question) as stream:
        events = await stream.until("token", 3)
    events += await alice.follow(events[0].data["generation_id"], events[-1].id)
    assert events[-1].data["finish_reason"] == "stop"
    assert await closed_by_the_client(site) == ["server"]


async def test_an_answer_in_the_background_goes_on_without_readers(alice, site):
    conversation_id = await alice.conversation()
    question = f"@twin {json.dumps({'tokens': 300, 'token_ms': 8})}\nGo"
    async with alice.sending(conversation_id, question, background=True) as stream:
        events = await stream.until("token", 3)
    assert await closed_by_the_client(site) == ["server"]
    rest = await alice.follow(events[0].data["generation_id"], events[-1].id)
    assert rest[-1].data["finish_reason"] == "stop"


async def test_those_who_wait_for_an_end_keep_no_database_connection_from_others(alice, site):
    """The site under test has eight connections."""
    worker = site.workers[0]
    async with alice.sending(await alice.conversation(), '@twin {"tokens": 5000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token")
        worker.send_signal(signal.SIGSTOP)
        try:
            path = f"/v1/generations/{events[0].data['generation_id']}/cancel"
            cancelling = [asyncio.create_task(alice.call("POST", path)) for _ in range(24)]
            listed = await asyncio.gather(*(alice.call("GET", "/v1/conversations") for _ in range(8)))
            waiting = sum(not each.done() for each in cancelling)
            cancelled = await asyncio.gather(*cancelling)
        finally:
            worker.send_signal(signal.SIGCONT)
    assert [status for status, _ in listed] == [200] * 8
    assert [status for status, _ in cancelled] == [204] * 24
    assert waiting > 8


async def test_stopping_one_whose_worker_was_killed_keeps_what_readers_have_seen(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 2000, "token_ms": 5}\nGo', background=True) as stream:
        events = await stream.until("token", 20)
        await asyncio.to_thread(site.kill_worker)
        await cancel(alice, events[0].data["generation_id"])
        site.start_worker()
        events += await stream.rest()
    assert len(text_of(events)) > 20
    await assert_stored_is_what_was_shown(events)
