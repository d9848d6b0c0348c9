"""What a worker writes reaches the token stream whole, once and in order, whatever becomes of Redis meanwhile."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.ids import new_id
from foundation.redis import connect_async
from inference import token_stream
from inference.positions import BEGINNING, DONE_ORDINAL, FAILURE_ORDINAL, Position
from inference.publisher import Publisher, TokenStreamWriter
from inference.script_connection import ScriptConnection
from inference.token_stream import Batch, Fenced, Names, StreamedEvent, token_event
from tests.inference.core.conftest import KEEP_SECONDS
from tests.inference.core.waiting import until

ODD_TEXT = ["\u2028\u0085", "\n", " ", "data: [DONE]", "🤗", "e", "\u0301", '"\\', "\r\n", "x" * 100_000]


async def stream_of(client, generation_id, after=BEGINNING):
    return [event async for page in token_stream.replay(client, generation_id, after) for event in page]


async def publish(client, generation_id, attempt, batch):
    arguments = token_stream.publish_arguments(Names.of(generation_id), attempt, batch, KEEP_SECONDS)
    return await client.eval(token_stream.PUBLISH, *arguments)


def text_of(events):
    return "".join(event.text for event in events)


def positions(events):
    return [event.position for event in events]


async def test_what_is_written_stands_in_the_stream_in_order(client, publisher):
    writer = publisher.writer(new_id(), 1)
    for text in ODD_TEXT:
        writer.write_text(text)
        writer.write_event("notice", code="between")
    writer.write_end(None, {"finish_reason": "stop"})
    assert await publisher.drain(writer, 5)
    events = await stream_of(client, writer.generation_id)
    assert text_of(events) == writer.text == "".join(ODD_TEXT)
    assert [event.type for event in events] == ["token", "notice"] * len(ODD_TEXT) + ["done"]
    assert positions(events) == sorted(set(positions(events)))


async def test_a_failure_and_the_end_stand_where_a_reader_expects_them(client, publisher):
    writer = publisher.writer(new_id(), 1)
    writer.write_text("ab")
    writer.write_end(("error", {"code": "no_capacity"}), {"finish_reason": "error"})
    assert await publisher.drain(writer, 5)
    assert positions(await stream_of(client, writer.generation_id)) == [
        Position(2, 0),
        Position(2, FAILURE_ORDINAL),
        Position(2, DONE_ORDINAL),
    ]


async def test_the_first_token_waits_for_nothing(client):
    """A few turns of the loop, which take no time, are enough for the command to be under way."""

    class Watched(ScriptConnection):
        was_asked = False

        async def run(self, calls):
            self.was_asked = True
            return await super().run(calls)

    async with Publisher(client, KEEP_SECONDS) as publisher:
        watched = publisher._script = Watched(client, token_stream.PUBLISH)
        writer = publisher.writer(new_id(), 1)
        await asyncio.sleep(0)
        writer.write_text("first")
        for _ in range(2):
            await asyncio.sleep(0)
        assert watched.was_asked
        assert await publisher.drain(writer, 5)


async def test_text_that_comes_while_a_batch_is_under_way_goes_with_the_next(client, publisher):
    writer = publisher.writer(new_id(), 1)
    writer.write_text("first")
    await until(lambda: writer.is_drained)
    for number in range(1000):
        writer.write_text(f" {number}")
    assert await publisher.drain(writer, 5)
    events = await stream_of(client, writer.generation_id)
    assert [len(events), text_of(events)] == [2, writer.text]


async def test_many_generations_share_one_round_trip(client, publisher, sync_client):
    writers = [publisher.writer(new_id(), 1) for _ in range(150)]
    async with client.pubsub() as channels:
        await channels.subscribe(*(token_stream.channel(writer.generation_id) for writer in writers))
        before = sync_client.info("stats")["total_reads_processed"]
        for writer in writers:
            writer.write_text("one token")
        for writer in writers:
            assert await publisher.drain(writer, 5)
        after = sync_client.info("stats")["total_reads_processed"]
    assert after - before < 20
    for writer in writers:
        assert text_of(await stream_of(client, writer.generation_id)) == "one token"


async def test_more_generations_than_one_batch_holds_are_all_served(client, publisher):
    writers = [publisher.writer(new_id(), 1) for _ in range(450)]
    for writer in writers:
        writer.write_text("x")
    for writer in writers:
        assert await publisher.drain(writer, 10)


async def test_a_later_attempt_fences_off_an_earlier_one(client, publisher):
    generation_id = new_id()
    zombie = publisher.writer(generation_id, 1)
    fenced = asyncio.Event()
    zombie.on_fenced = fenced.set
    zombie.write_text("from the first")
    assert await publisher.drain(zombie, 5)
    published = await token_stream.begin(client, generation_id, 2, KEEP_SECONDS)
    heir = publisher.writer(generation_id, 2)
    heir.continue_from(published)
    zombie.write_text(", never to be seen")
    async with asyncio.timeout(5):
        await fenced.wait()
    heir.write_text(" and the second")
    assert await publisher.drain(heir, 5)
    assert text_of(await stream_of(client, generation_id)) == heir.text == "from the first and the second"


async def test_an_earlier_attempt_in_the_same_worker_does_not_displace_a_later_one(client, publisher):
    generation_id = new_id()
    await token_stream.begin(client, generation_id, 2, KEEP_SECONDS)
    zombie, heir = publisher.writer(generation_id, 1), publisher.writer(generation_id, 2)
    heir.write_text("the heir's")
    zombie.write_text("the zombie's")
    assert await publisher.drain(heir, 5)
    assert text_of(await stream_of(client, generation_id)) == "the heir's"


async def test_an_earlier_attempt_cannot_begin_any_more(client):
    generation_id = new_id()
    await token_stream.begin(client, generation_id, 2, KEEP_SECONDS)
    with pytest.raises(Fenced):
        await token_stream.begin(client, generation_id, 1, KEEP_SECONDS)


async def test_a_batch_whose_reply_was_lost_is_published_once(client):
    generation_id = new_id()
    batch = Batch(BEGINNING, (token_event(BEGINNING, "once"),))
    assert await publish(client, generation_id, 1, batch) == b"ok"
    assert await publish(client, generation_id, 1, batch) == b"ok"
    assert text_of(await stream_of(client, generation_id)) == "once"


async def test_after_a_lost_reply_only_what_came_since_is_added(client):
    generation_id = new_id()
    first = token_event(BEGINNING, "first")
    notice = StreamedEvent(first.position.next(), "notice", b'{"type":"notice"}')
    second = token_event(notice.position, " second")
    assert await publish(client, generation_id, 1, Batch(BEGINNING, (first, notice))) == b"ok"
    assert await publish(client, generation_id, 1, Batch(BEGINNING, (first, notice, second))) == b"ok"
    assert await stream_of(client, generation_id) == [first, notice, second]


async def test_a_batch_that_does_not_join_what_is_there_is_refused(client):
    generation_id = new_id()
    await publish(client, generation_id, 1, Batch(BEGINNING, (token_event(BEGINNING, "abc"),)))
    stray = Batch(Position(9, 0), (token_event(Position(9, 0), "xyz"),))
    assert await publish(client, generation_id, 1, stray) == b"gap"
    assert text_of(await stream_of(client, generation_id)) == "abc"


async def test_a_stream_without_its_state_is_replaced_not_garbled(client, publisher):
    writer = publisher.writer(new_id(), 1)
    writer.write_text("before")
    assert await publisher.drain(writer, 5)
    await client.delete(token_stream.state_key(writer.generation_id))
    writer.write_text(" and after")
    assert await publisher.drain(writer, 5)
    assert text_of(await stream_of(client, writer.generation_id)) == "before and after"


async def test_a_stream_that_is_being_written_is_kept(client):
    async with Publisher(client, keep_seconds=1) as publisher:
        writer = publisher.writer(new_id(), 1)
        names = token_stream.Names.of(writer.generation_id)

        async def milliseconds_left():
            return min([await client.pttl(names.events), await client.pttl(names.state)])

        async def is_ageing():
            return await milliseconds_left() < 850

        writer.write_text("a")
        assert await publisher.drain(writer, 5)
        await until(is_ageing)
        writer.write_text("b")
        assert await publisher.drain(writer, 5)
        assert await milliseconds_left() > 850


async def test_a_stream_that_was_lost_is_written_anew_whole(client, publisher):
    writer = publisher.writer(new_id(), 1)
    writer.write_text("lost ")
    writer.write_event("notice", code="lost_too")
    assert await publisher.drain(writer, 5)
    await client.unlink(token_stream.events_key(writer.generation_id), token_stream.state_key(writer.generation_id))
    writer.write_text("and ")
    writer.write_event("notice", code="kept")
    writer.write_text("found")
    writer.write_end(None, {})
    assert await publisher.drain(writer, 5)
    events = await stream_of(client, writer.generation_id)
    assert text_of(events) == writer.text == "lost and found"
    assert [event.type for event in events] == ["token", "token", "notice", "token", "done"]


async def test_the_loss_of_one_stream_leaves_the_others_alone(client, publisher):
    writers = [publisher.writer(new_id(), 1) for _ in range(20)]
    for writer in writers:
        writer.write_text("before")
        assert await publisher.drain(writer, 5)
    for writer in writers[::2]:
        await client.unlink(token_stream.events_key(writer.generation_id), token_stream.state_key(writer.generation_id))
    for writer in writers:
        writer.write_text(" and after")
    for writer in writers:
        assert await publisher.drain(writer, 5)
        assert text_of(await stream_of(client, writer.generation_id)) == "before and after"


async def test_a_checkpoint_that_is_ahead_of_the_stream_replaces_it(client, publisher):
    generation_id = new_id()
    await publish(client, generation_id, 1, Batch(BEGINNING, (token_event(BEGINNING, "begun"),)))
    heir = publisher.writer(generation_id, 2)
    heir.continue_from(await token_stream.begin(client, generation_id, 2, KEEP_SECONDS))
    heir.seed("begun and stored")
    heir.write_event("notice", code="resumed")
    heir.write_text(", continued")
    assert await publisher.drain(heir, 5)
    events = await stream_of(client, generation_id)
    assert text_of(events) == heir.text == "begun and stored, continued"


async def test_a_stream_without_its_beginning_is_not_taken_for_the_answer(client, publisher):
    generation_id = new_id()
    writer = publisher.writer(generation_id, 1)
    writer.write_text("evicted ")
    assert await publisher.drain(writer, 5)
    await client.unlink(token_stream.events_key(generation_id))
    writer.write_text("tail")
    assert await publisher.drain(writer, 5)
    heir = publisher.writer(generation_id, 2)
    heir.continue_from(await token_stream.begin(client, generation_id, 2, KEEP_SECONDS))
    assert heir.text == ""


async def test_a_full_redis_loses_nothing_and_is_written_to_once_it_has_room(own_valkey):
    async with connect_async() as client, Publisher(client, KEEP_SECONDS) as publisher:
        writer = publisher.writer(new_id(), 1)
        writer.write_text("before, ")
        assert await publisher.drain(writer, 5)
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        writer.write_text("meanwhile, ")
        refusals = await until(lambda: own_valkey.command("INFO", "errorstats").get("errorstat_OOM"))
        assert refusals["count"] >= 1
        writer.write_text("still, ")
        assert not writer.is_drained
        own_valkey.command("CONFIG", "SET", "maxmemory", "0")
        writer.write_text("after")
        assert await publisher.drain(writer, 5)
        assert text_of(await stream_of(client, writer.generation_id)) == "before, meanwhile, still, after"


async def test_a_redis_that_refuses_writes_is_outlived(own_valkey):
    async with connect_async() as client, Publisher(client, KEEP_SECONDS) as publisher:
        writer = publisher.writer(new_id(), 1)
        own_valkey.command("REPLICAOF", "127.0.0.1", "1")
        writer.write_text("kept")
        await until(lambda: own_valkey.command("INFO", "errorstats"))
        own_valkey.command("REPLICAOF", "NO", "ONE")
        assert await publisher.drain(writer, 5)
        assert text_of(await stream_of(client, writer.generation_id)) == "kept"


async def test_a_redis_that_is_started_anew_gets_the_whole_text(own_valkey):
    async with connect_async() as client, Publisher(client, KEEP_SECONDS) as publisher:
        writers = [publisher.writer(new_id(), 1) for _ in range(3)]
        for writer in writers:
            writer.write_text("before ")
            assert await publisher.drain(writer, 5)
        own_valkey.stop()
        for writer in writers:
            writer.write_text("meanwhile ")
        own_valkey.start()
        for writer in writers:
            writer.write_text("after")
            assert await publisher.drain(writer, 10)
            assert text_of(await stream_of(client, writer.generation_id)) == "before meanwhile after"


async def test_draining_gives_up_in_time_while_redis_is_away(own_valkey):
    async with connect_async() as client, Publisher(client, KEEP_SECONDS) as publisher:
        writer = publisher.writer(new_id(), 1)
        own_valkey.stop()
        writer.write_text("kept")
        assert await publisher.drain(writer, 0.2) is False
        own_valkey.start()
        assert await publisher.drain(writer, 10) is True


async def test_a_cancelled_round_trip_is_made_again(client):
    generation_id = new_id()
    async with Publisher(client, KEEP_SECONDS) as publisher:
        writer = publisher.writer(generation_id, 1)
        writer.write_text("kept")
        await asyncio.sleep(0)
    assert not writer.is_drained
    assert writer.next_batch().events[0].text == "kept"


class Unwoken:
    """Takes the place of the publisher where a test sends by itself."""

    def wake(self, writer):
        """Nobody sends."""


steps = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).map(lambda text: ("text", text)),
        st.sampled_from([("notice", ""), ("publish", ""), ("lose", ""), ("publish without reply", "")]),
    ),
    max_size=30,
)


@given(steps)
def test_whatever_is_lost_and_when_the_stream_ends_up_with_the_whole_text(steps):
    """A model of Redis: a list of events and the last position, with the rules of the publishing script."""
    writer = TokenStreamWriter(Unwoken(), new_id(), 1)
    stream = []

    def send(is_replied):
        while batch := writer.next_batch():
            ids = positions(batch.events)
            last = stream[-1].position if stream else BEGINNING
            if last in ids:
                stream.extend(batch.events[ids.index(last) + 1 :])
            elif batch.previous in (last, BEGINNING):
                if batch.previous == BEGINNING:
                    stream.clear()
                stream.extend(batch.events)
            else:
                writer.start_over()
                continue
            if not is_replied:
                return
            writer.was_published(batch)

    for kind, text in [*steps, ("publish", "")]:
        match kind:
            case "text":
                writer.write_text(text)
            case "notice":
                writer.write_event("notice")
            case "lose":
                stream.clear()
            case "publish":
                send(is_replied=True)
            case "publish without reply":
                send(is_replied=False)
        assert positions(stream) == sorted(set(positions(stream)))
    if not any(kind == "lose" for kind, _ in steps):
        assert text_of(stream) == writer.text
    elif stream:
        assert writer.text.encode()[: stream[-1].position.offset].decode() == text_of(stream)


async def test_a_redis_that_has_forgotten_the_script_is_taught_it_again(client, publisher):
    writer = publisher.writer(new_id(), 1)
    writer.write_text("before")
    assert await publisher.drain(writer, 5)
    await client.script_flush()
    writer.write_text(" and after")
    assert await publisher.drain(writer, 5)
    assert text_of(await stream_of(client, writer.generation_id)) == "before and after"
