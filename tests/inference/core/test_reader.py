"""A slow reader costs little, delays nobody, and knows that it has to catch up."""

import asyncio

from conversations.streaming.reader import MOST_PENDING_BYTES, LookAgain, Reader, Waiting
from inference.positions import BEGINNING
from inference.token_stream import Batch, token_event


def batches(count, size):
    """Make consecutive batches, each with a text of so many bytes."""
    made, previous = [], BEGINNING
    for _ in range(count):
        event = token_event(previous, "x" * size)
        made.append(Batch(previous, (event,)))
        previous = event.position
    return made


async def taken(reader):
    found = []
    while (what := await reader.next(0)) is not None:
        found.append(what)
    return found


async def test_announcements_are_taken_in_order():
    reader, some = Reader(), batches(10, 5)
    for batch in some:
        reader.offer(batch)
    assert await taken(reader) == some


async def test_a_reader_that_takes_nothing_keeps_a_bounded_amount():
    reader = Reader()
    for batch in batches(10_000, 1000):
        reader.offer(batch)
        kept = sum(len(e.data) for what in reader._pending if isinstance(what, Batch) for e in what.events)
        assert kept == reader._pending_bytes <= MOST_PENDING_BYTES
    assert isinstance((await taken(reader))[0], LookAgain)


async def test_what_comes_after_the_drop_is_kept_behind_it():
    reader, some = Reader(), batches(400, 1000)
    for batch in some:
        reader.offer(batch)
    first, *later = await taken(reader)
    assert first == LookAgain()
    assert later == some[len(some) - len(later) :]


async def test_a_batch_that_is_too_large_by_itself_is_only_hinted_at():
    reader = Reader()
    (huge,) = batches(1, MOST_PENDING_BYTES)
    reader.offer(huge)
    assert await taken(reader) == [LookAgain()]


async def test_a_reader_that_catches_up_has_all_its_room_again():
    reader = Reader()
    for _ in range(5):
        for batch in batches(200, 1000):
            reader.offer(batch)
        assert len(await taken(reader)) == 200


async def test_nothing_comes_in_time():
    assert await Reader().next(0.001) is None


async def test_who_waits_is_woken():
    reader = Reader()
    waiting = asyncio.create_task(reader.next(10))
    await asyncio.sleep(0)
    reader.tell_place(3)
    assert await waiting == Waiting(3)
