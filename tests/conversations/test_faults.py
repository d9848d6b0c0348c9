"""What dies, stalls or vanishes in the middle of an answer; the reader sees one whole text all the same."""

import asyncio
import json
import signal

import pytest
from asgiref.sync import sync_to_async

from accounts.models import UsageRecord
from conversations.models import Generation, Message
from inference.testing.answers import expected_answer
from tests.api_client import text_of
from tests.running_site import wait_until

LONG = '@twin {"tokens": 1200, "token_ms": 15}\nGo on and on'


def notices(events):
    return [event.data["code"] for event in events if event.type == "notice"]


async def assert_whole(events, question, *, attempt=1):
    assert text_of(events) == expected_answer(question)
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert events[-1].data["finish_reason"] == "stop"
    generation = await Generation.objects.select_related("message").aget(pk=events[0].data["generation_id"])
    assert generation.message.content == text_of(events)
    assert (generation.status, generation.attempt) == ("complete", attempt)
    assert await UsageRecord.objects.filter(generation_id=generation.pk).acount() == 1


def worker_count(redis_store):
    return sum(1 for name in redis_store.scan_iter(match="*:1:workers") for _ in redis_store.zrange(name, 0, -1))


@pytest.fixture
def replacing(site, redis_store):
    """Starts a second worker while the first one writes, and gives the first one: what happens to it is the test."""

    def start_second():
        site.start_worker()
        wait_until(lambda: worker_count(redis_store) == 2, 40, "two workers")
        return site.workers[0]

    yield start_second
    first = site.workers.pop(0)
    first.send_signal(signal.SIGCONT)
    first.terminate()
    first.wait(30)


async def test_another_worker_continues_the_answer_of_a_killed_one(alice, replacing):
    async with alice.sending(await alice.conversation(), LONG) as stream:
        events = await stream.until("token", 20)
        worker = await asyncio.to_thread(replacing)
        worker.kill()
        worker.wait()
        events += await stream.rest()
    assert notices(events)[0] == "resumed"
    await assert_whole(events, LONG, attempt=2)


async def test_a_worker_that_was_thought_dead_changes_nothing_when_it_comes_back(alice, replacing, site):
    async with alice.sending(await alice.conversation(), LONG) as stream:
        events = await stream.until("token", 20)
        zombie = await asyncio.to_thread(replacing)
        zombie.send_signal(signal.SIGSTOP)
        events += await stream.until("notice")  # the other has taken over
        zombie.send_signal(signal.SIGCONT)
        events += await stream.rest()
    await assert_whole(events, LONG, attempt=2)
    await sync_to_async(site.twin.wait)(open=0)
    assert text_of(await alice.follow(events[0].data["generation_id"])) == expected_answer(LONG)


async def test_a_worker_that_is_told_to_stop_leaves_its_answer_to_another(alice, replacing):
    async with alice.sending(await alice.conversation(), LONG) as stream:
        events = await stream.until("token", 20)
        worker = await asyncio.to_thread(replacing)
        worker.terminate()
        events += await stream.rest()
        assert await asyncio.to_thread(worker.wait, 20) == 0
    await assert_whole(events, LONG, attempt=2)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "cut", "after": 30},
        {"kind": "cut", "after": 30, "how": "fin"},
        {"kind": "cut_mid_character", "after": 30},
        {"kind": "clean_end", "after": 30},
        {"kind": "error", "after": 30},
        {"kind": "garbage", "after": 30},
        {"kind": "invalid_utf8", "after": 30},
        {"kind": "cut", "after": 0},
        {"kind": "error", "after": 0, "error_type": "overloaded"},
        {"kind": "disconnect"},
        {"kind": "html_502"},
        {"kind": "overloaded_429"},
    ],
    ids=lambda fault: f"{fault['kind']} after {fault.get('after', 'nothing')} {fault.get('how', '')}",
)
async def test_a_model_server_that_fails_is_continued_without_a_seam(alice, fault):
    question = f"@twin {json.dumps({'tokens': 60, 'token_ms': 2, 'fault': fault})}\nGo"
    events = await alice.send(await alice.conversation(), question)
    await assert_whole(events, question)
    shown = ["resumed_on_another_replica"] if fault.get("after") else []
    assert notices(events) == shown
    assert "error" not in [event.type for event in events]


async def test_what_the_request_itself_causes_is_told_and_not_repeated(alice, site):
    question = f"@twin {json.dumps({'fault': {'kind': 'plain_422', 'always': True}})}\nGo"
    events = await alice.send(await alice.conversation(), question)
    told = [event for event in events if event.type != "queued"]
    assert [event.type for event in told] == ["start", "error", "done"]
    assert told[1].data["retryable"] is False
    assert events[-1].data["finish_reason"] == "error"
    message = await Message.objects.aget(pk=events[0].data["message_id"])
    assert message.status == "failed"
    report = await sync_to_async(site.twin.wait)(open=0)
    assert len([r for r in report["requests"] if r["path"] == "/v1/chat/completions"]) == 1
    after = await alice.send(str(message.conversation_id), '@twin {"text": "Better."}\nAgain', parent_id=None)
    assert text_of(after) == "Better."


async def test_redis_that_forgets_everything_is_filled_again(alice, redis_store):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, LONG) as stream:
        events = await stream.until("token", 20)
        for name in list(redis_store.scan_iter(match="*")):
            redis_store.unlink(name)
        late = await alice.follow(events[0].data["generation_id"])
        events += await stream.rest()
    await assert_whole(events, LONG)
    assert text_of(late) == text_of(events)


async def test_who_waits_is_told_the_place_and_until_when(alice, site):
    site.kill_worker()
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"text": "At last."}\nGo') as stream:
        events = await stream.until("queued")
        assert events[-1].data["position"] == 1
        assert events[-1].data["deadline"].endswith("Z")
        site.start_worker()
        events += await stream.rest()
    assert text_of(events) == "At last."
    assert [event.id for event in events] == sorted({event.id for event in events})


async def test_stopping_while_it_waits_never_reaches_a_model_server(alice, site):
    site.kill_worker()
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"text": "Never."}\nGo') as stream:
        start = await stream.next()
        status, _ = await alice.call("POST", f"/v1/generations/{start.data['generation_id']}/cancel")
        assert status == 204
        events = [start, *await stream.rest()]
    site.start_worker()
    assert events[-1].data["finish_reason"] == "cancelled"
    assert text_of(await alice.send(conversation_id, '@twin {"text": "Next."}\nGo', parent_id=None)) == "Next."
    report = await sync_to_async(site.twin.report)()
    assert len([r for r in report["requests"] if r["path"] == "/v1/chat/completions"]) == 1
