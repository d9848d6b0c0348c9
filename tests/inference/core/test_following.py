"""Every reader gets the whole text once, and the end, whatever becomes of Redis and of the worker."""

import asyncio
from contextlib import aclosing

import pytest
import pytest_asyncio
from django.db import connection

from conversations.models import Conversation
from conversations.services import claims, requeueing
from conversations.services.generations import request_cancel
from conversations.streaming.follow import follow
from conversations.streaming.hub import close_hub, current_hub
from foundation.database import in_database
from foundation.redis import connect
from inference import queue, token_stream
from inference.positions import DONE_ORDINAL, Position
from inference.token_stream import Batch, encode_batch, token_event
from tests.inference.core.factories import make_generation, read_generation, read_snapshot
from tests.inference.core.following import follower, written_reply
from tests.inference.core.jobs import make_job
from tests.inference.core.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = [f"Teil {number}: größer ≥ 🤗\u2028 " for number in range(40)]
WHOLE = "".join(PARTS)


@pytest_asyncio.fixture(autouse=True)
async def _hub():
    yield
    await close_hub()


def subscribers(client, generation_id):
    return client.pubsub_numsub(token_stream.channel(generation_id))[0][1]


async def test_followers_from_before_during_and_after_read_the_same():
    async with written_reply() as reply, follower(reply.generation_id) as early:
        for part in PARTS[:20]:
            await reply.write(part)
        async with follower(reply.generation_id) as late:
            for part in PARTS[20:]:
                await reply.write(part)
            await reply.end()
            await early.end()
            await late.end()
        async with follower(reply.generation_id) as afterwards:
            await afterwards.end()
    assert early.text == late.text == afterwards.text == WHOLE
    assert early.events[-1] == late.events[-1] == afterwards.events[-1]
    assert early.types == ["start", *["token"] * 40, "done"]


@pytest.mark.parametrize("is_ended", [False, True])
async def test_from_any_event_on_exactly_the_rest_follows(is_ended):
    async with written_reply() as reply:
        for part in PARTS[:6]:
            await reply.write(part)
        if is_ended:
            await reply.end()
        reached = 0
        for number, part in enumerate(PARTS[:6]):
            async with follower(reply.generation_id, Position(reached, 0)) as late:
                rest = "".join(PARTS[number:6])
                await until(lambda late=late, rest=rest: late.text == rest)
            reached += len(part.encode())


async def test_followers_read_on_after_their_connection_was_killed(own_valkey, sync_client):
    async with written_reply() as reply, follower(reply.generation_id) as one, follower(reply.generation_id) as other:
        for number, part in enumerate(PARTS):
            await reply.write(part)
            if number % 10 == 5:
                own_valkey.command("CLIENT", "KILL", "TYPE", "pubsub")
        await reply.end()
        await one.end()
        await other.end()
    assert one.text == other.text == WHOLE


async def test_followers_read_on_after_redis_was_started_anew(own_valkey):
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        for part in PARTS[:20]:
            await reply.write(part)
        own_valkey.stop()
        for part in PARTS[20:25]:
            reply.writer.write_text(part)
        own_valkey.start()
        for part in PARTS[25:]:
            await reply.write(part)
        await reply.end()
        await reader.end()
    assert reader.text == WHOLE
    assert reader.types[-1] == "done"


async def test_readers_of_a_stream_that_was_lost_read_no_text_twice(own_valkey):
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        for number, part in enumerate(PARTS):
            await reply.write(part)
            if number % 7 == 3:
                own_valkey.command("FLUSHALL")
        async with follower(reply.generation_id) as late:
            await reply.end()
            await reader.end()
            await late.end()
    assert reader.text == late.text == WHOLE


async def test_a_reader_that_takes_nothing_for_long_misses_nothing():
    async with written_reply() as reply:
        snapshot = await in_database(read_snapshot, reply.generation_id)
        async with aclosing(follow(snapshot)) as events:
            assert (await anext(events)).type == "start"
            await reply.write("first ")
            texts = [(await anext(events)).text]
            parts = [f"{number} " + "x" * 20_000 for number in range(60)]
            for part in parts:
                await reply.write(part)
            await reply.end()
            async with asyncio.timeout(20):
                texts += [event.text async for event in events]
    assert "".join(texts) == "first " + "".join(parts)


async def test_the_end_comes_though_its_announcement_was_lost():
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write(WHOLE)
        await until(lambda: reader.text == WHOLE)
        await reply.store_the_end()
        await reader.end(seconds=15)
    assert reader.types[-1] == "done"
    assert reader.text == WHOLE


async def test_the_end_comes_while_redis_is_away(own_valkey):
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("seen, ")
        await until(lambda: reader.text == "seen, ")
        own_valkey.stop()
        reply.writer.write_text("stored")
        await reply.store_the_end()
        await reader.end()
        own_valkey.start()
    assert reader.text == "seen, stored"
    assert reader.types[-1] == "done"


async def test_stored_text_is_read_while_redis_is_away(own_valkey):
    async with written_reply() as reply:
        reply.writer.write_text("stored")
        own_valkey.stop()
        await reply.checkpoint()
        async with follower(reply.generation_id) as reader:
            await until(lambda: reader.text == "stored")
        own_valkey.start()


async def test_a_full_redis_does_not_keep_readers_out(own_valkey):
    async with written_reply() as reply:
        await reply.write("stored")
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        async with follower(reply.generation_id) as reader, follower(reply.generation_id) as other:
            await until(lambda: reader.text == other.text == "stored")
            refused = own_valkey.command("INFO", "errorstats")["errorstat_OOM"]["count"]
            await until(lambda: own_valkey.command("INFO", "errorstats")["errorstat_OOM"]["count"] > refused)
            own_valkey.command("CONFIG", "SET", "maxmemory", "0")
            await reply.write(" and more")
            await reply.end()
            await reader.end()
            await other.end()
    assert reader.text == other.text == "stored and more"


async def test_a_stream_that_lost_its_beginning_does_not_cost_a_reader_the_text(client):
    async with written_reply() as reply:
        await reply.write("the beginning")
        await reply.checkpoint()
        await client.delete(token_stream.events_key(reply.generation_id))
        reply.writer.write_event("notice", code="something")
        assert await reply.publisher.drain(reply.writer, 5)
        async with follower(reply.generation_id) as reader:
            await until(lambda: reader.text == "the beginning")
            await reply.end()
            await reader.end()
    assert reader.text == "the beginning"


async def test_an_announcement_that_was_lost_is_made_up_for_by_the_next(client):
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("one, ")
        await until(lambda: reader.text == "one, ")
        second = token_event(reader.events[-1].position, "two, ")
        third = token_event(second.position, "three")
        for event in (second, third):
            fields = {"t": event.type, "d": event.data}
            await client.xadd(token_stream.events_key(reply.generation_id), fields, id=event.position.redis_id)
        announcement = encode_batch(Batch(second.position, (third,)))
        await client.publish(token_stream.channel(reply.generation_id), announcement)
        await until(lambda: reader.text == "one, two, three")


async def test_a_reader_ahead_of_what_is_left_still_gets_the_end(client):
    """Redis and the worker were lost together: the answer was written anew from its checkpoint, and became shorter."""
    async with written_reply() as reply, follower(reply.generation_id, Position(1000, 0)) as ahead:
        await reply.write("short")
        await reply.end()
        async with asyncio.timeout(20):
            await ahead.task
        assert [event.type for event in ahead.events] == ["done"]


async def test_who_has_the_end_gets_nothing_more():
    async with written_reply() as reply:
        await reply.write("all")
        await reply.end()
        async with follower(reply.generation_id, Position(3, DONE_ORDINAL)) as reader:
            await reader.end()
    assert reader.events == []


async def test_followers_of_a_deleted_conversation_are_told():
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("seen")
        await until(lambda: reader.text == "seen")
        await in_database(lambda: Conversation.objects.all().delete())
        await reader.end()
    assert reader.types[-2:] == ["error", "done"]


async def test_who_waits_is_told_the_place_and_the_end_of_the_wait(sync_client):
    generation = await in_database(make_generation)
    queue.enqueue(sync_client, [make_job(), make_job(generation_id=generation.pk)])
    async with follower(generation.pk) as reader:
        await until(lambda: "queued" in reader.types)
        assert b'"position":2' in reader.events[-1].data
        assert b'"expected_wait_seconds":null' in reader.events[-1].data
        await in_database(request_cancel, generation.pk)
        await reader.end()
    assert reader.types == ["start", "queued", "done"]
    assert b"cancelled" in reader.events[-1].data


async def test_a_channel_is_given_up_after_its_last_reader(sync_client):
    async with written_reply() as reply, follower(reply.generation_id) as stays:
        async with follower(reply.generation_id):
            await until(lambda: subscribers(sync_client, reply.generation_id) == 1)
        await reply.write("for the one who stays")
        await until(lambda: stays.text)
        await reply.end()
        await stays.end()
        await until(lambda: subscribers(sync_client, reply.generation_id) == 0)


async def test_a_reader_who_comes_back_at_once_misses_nothing():
    async with written_reply() as reply:
        text, reached = "", Position(0, 1)
        for part in PARTS:
            async with follower(reply.generation_id, reached) as reader:
                await reply.write(part)
                await until(lambda reader=reader, part=part: reader.text == part)
                text, reached = text + reader.text, reader.events[-1].position
    assert text == WHOLE


async def test_nothing_is_left_behind_when_the_hub_closes(own_valkey):
    tasks_before = asyncio.all_tasks()
    connections_before = len(own_valkey.command("CLIENT", "LIST"))
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("x")
        await until(lambda: reader.text == "x")
    await close_hub()
    assert asyncio.all_tasks() == tasks_before
    await until(lambda: len(own_valkey.command("CLIENT", "LIST")) <= connections_before)


async def test_following_keeps_no_database_connection_busy():
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("x")
        await until(lambda: reader.text == "x")

        def busy():
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND state <> 'idle' AND pid <> pg_backend_pid()"
                )
                return cursor.fetchone()[0]

        await until(lambda: in_database(lambda: busy() == 0))


async def test_a_dead_workers_answer_goes_on_for_its_readers():
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        await reply.write("from the first, ")
        heir = await in_database(_taken_over, reply.attempt)
        writer = reply.publisher.writer(heir.generation_id, heir.number)
        writer.continue_from(await token_stream.begin(current_hub().client, heir.generation_id, heir.number, 600))
        writer.write_event("notice", code="resumed")
        writer.write_text("from the second")
        reply.attempt, reply.writer = heir, writer
        await reply.end()
        await reader.end()
    assert reader.text == "from the first, from the second"
    assert reader.types == ["start", "token", "notice", "token", "done"]


def _taken_over(attempt):
    requeueing.hand_over(attempt, "")
    return claims.claim(attempt.generation_id)


async def test_the_row_is_what_a_reader_ends_with():
    async with written_reply() as reply, follower(reply.generation_id) as reader:
        for part in PARTS:
            await reply.write(part)
        await reply.end()
        await reader.end()
        assert reader.text == (await in_database(read_generation, reply.generation_id)).message.content
        with connect() as client:
            assert client.ttl(token_stream.events_key(reply.generation_id)) > 0
