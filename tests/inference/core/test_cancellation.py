"""Stop works wherever the work is, ends it once, and touches nothing else."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.ids import new_id
from inference.cancellation import Cancellation, Cancellations, Stopped, Why


def cancels_pending():
    return asyncio.current_task().cancelling()


async def forever():
    await asyncio.Event().wait()


async def run(cancellation, work):
    async with cancellation:
        await work()


async def a_little_later(function, *args):
    asyncio.get_running_loop().call_soon(function, *args)


async def test_a_request_before_the_block_stops_it_at_its_first_await():
    cancellation = Cancellation()
    cancellation.request(Why.CANCELLED)
    reached = []

    async def work():
        reached.append("before the first await")
        await forever()
        reached.append("after it")

    with pytest.raises(Stopped) as stopped:
        await run(cancellation, work)
    assert stopped.value.why is Why.CANCELLED
    assert reached == ["before the first await"]
    assert cancels_pending() == 0


async def test_a_request_during_the_block_stops_what_it_awaits():
    cancellation = Cancellation()
    await a_little_later(cancellation.request, Why.CANCELLED)
    with pytest.raises(Stopped):
        async with cancellation:
            await forever()
    assert cancels_pending() == 0


async def test_what_the_block_holds_is_closed_before_it_ends():
    cancellation = Cancellation()
    steps = []
    await a_little_later(cancellation.request, Why.CANCELLED)
    try:
        async with cancellation:
            try:
                await forever()
            finally:
                await asyncio.sleep(0)
                steps.append("closed")
    except Stopped:
        steps.append("stopped")
    assert steps == ["closed", "stopped"]


async def test_a_request_at_the_very_end_of_the_block_still_counts_and_leaks_nothing():
    cancellation = Cancellation()
    with pytest.raises(Stopped):
        async with cancellation:
            cancellation.request(Why.CANCELLED)
    assert cancels_pending() == 0
    await asyncio.sleep(0)  # nothing is left to be delivered here


async def test_a_request_after_the_block_changes_nothing():
    cancellation = Cancellation()
    async with cancellation:
        await asyncio.sleep(0)
    cancellation.request(Why.CANCELLED)
    await asyncio.sleep(0)
    assert cancels_pending() == 0


async def test_a_second_request_does_not_interrupt_the_closing():
    cancellation = Cancellation()
    closed = asyncio.Event()

    async def work():
        try:
            await forever()
        finally:
            cancellation.request(Why.HANDED_OVER)
            cancellation.request(Why.CANCELLED)
            await asyncio.sleep(0)
            closed.set()

    await a_little_later(cancellation.request, Why.CANCELLED)
    with pytest.raises(Stopped) as stopped:
        await run(cancellation, work)
    assert closed.is_set()
    assert stopped.value.why is Why.CANCELLED
    assert cancels_pending() == 0


@pytest.mark.parametrize("first", [Why.CANCELLED, Why.HANDED_OVER])
async def test_the_fence_overrides_any_other_reason(first):
    cancellation = Cancellation()

    async def work():
        cancellation.request(first)
        cancellation.request(Why.FENCED)
        await forever()

    with pytest.raises(Stopped) as stopped:
        await run(cancellation, work)
    assert stopped.value.why is Why.FENCED


async def test_no_other_reason_overrides_the_fence():
    cancellation = Cancellation()
    cancellation.request(Why.FENCED)
    cancellation.request(Why.CANCELLED)
    assert cancellation.why is Why.FENCED


async def test_a_block_that_swallows_its_cancellation_ends_as_stopped():
    cancellation = Cancellation()

    async def work():
        with suppress(asyncio.CancelledError):
            await forever()

    await a_little_later(cancellation.request, Why.CANCELLED)
    with pytest.raises(Stopped):
        await run(cancellation, work)
    assert cancels_pending() == 0


async def test_an_error_of_the_block_is_not_hidden_by_a_request():
    cancellation = Cancellation()

    async def work():
        cancellation.request(Why.CANCELLED)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(cancellation, work)
    assert cancels_pending() == 0
    await asyncio.sleep(0)


async def test_a_time_limit_inside_the_block_keeps_its_meaning():
    cancellation = Cancellation()
    with pytest.raises(TimeoutError):
        async with cancellation, asyncio.timeout(0):
            await forever()
    assert cancels_pending() == 0


async def test_the_cancellation_of_the_task_itself_passes_through():
    cancellation = Cancellation()
    begun = asyncio.Event()

    async def work():
        async with cancellation:
            begun.set()
            await forever()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("outer_first", [True, False])
async def test_the_cancellation_of_the_task_itself_wins_over_a_request(outer_first):
    cancellation = Cancellation()
    begun = asyncio.Event()

    async def work():
        async with cancellation:
            begun.set()
            await forever()

    task = asyncio.create_task(work())
    await begun.wait()
    if outer_first:
        task.cancel()
        cancellation.request(Why.CANCELLED)
    else:
        cancellation.request(Why.CANCELLED)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_is_being_cancelled_can_still_run_a_block_that_is_stopped():
    """Cleaning up after a cancellation is work like any other."""
    told = []
    begun = asyncio.Event()

    async def work():
        try:
            begun.set()
            await forever()
        finally:
            cancellation = Cancellation()
            cancellation.request(Why.HANDED_OVER)
            try:
                async with cancellation:
                    await forever()
            except Stopped as stopped:
                told.append(stopped.why)

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == [Why.HANDED_OVER]


async def test_the_tasks_own_cancellation_at_the_very_end_is_not_swallowed():
    cancellation = Cancellation()

    async def work():
        async with cancellation:
            cancellation.request(Why.CANCELLED)
            asyncio.get_running_loop().call_soon(task.cancel)

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    assert task.cancelled() or isinstance(task.exception(), Stopped)
    if not task.cancelled():
        pytest.fail("the task went on although it was cancelled while its block ended")


@given(requests_at=st.lists(st.integers(0, 6), min_size=1, max_size=3), cancel_at=st.none() | st.integers(0, 6))
def test_at_every_turn_of_the_loop_a_request_either_stops_the_block_or_comes_too_late(requests_at, cancel_at):
    async def scenario():
        cancellation = Cancellation()
        ended = []

        async def work():
            for _ in range(2):
                await asyncio.sleep(0)
            try:
                async with cancellation:
                    for _ in range(2):
                        await asyncio.sleep(0)
                ended.append("whole")
            except Stopped:
                ended.append("stopped")
            assert cancels_pending() == 0 or cancel_at is not None
            for _ in range(3):
                await asyncio.sleep(0)

        task = asyncio.create_task(work())
        for turn in range(8):
            for _ in range(requests_at.count(turn)):
                cancellation.request(Why.CANCELLED)
            if turn == cancel_at:
                task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([task])
        if cancel_at is None:
            assert task.exception() is None
            assert len(ended) == 1
            assert (ended == ["stopped"]) == (min(requests_at) <= 4)
        else:
            assert task.cancelled() or task.exception() is None

    asyncio.run(scenario())


async def test_a_request_reaches_every_piece_of_work_of_its_generation_and_no_other():
    cancellations, generation_id = Cancellations(), new_id()
    with (
        cancellations.opened(generation_id) as one,
        cancellations.opened(generation_id) as other,
        cancellations.opened(new_id()) as stranger,
    ):
        cancellations.request(generation_id, Why.CANCELLED)
    assert [one.why, other.why, stranger.why] == [Why.CANCELLED, Why.CANCELLED, None]


async def test_the_end_of_one_piece_of_work_leaves_the_other_within_reach():
    cancellations, generation_id = Cancellations(), new_id()
    with cancellations.opened(generation_id) as longer:
        with cancellations.opened(generation_id):
            pass
        cancellations.request(generation_id, Why.CANCELLED)
        assert longer.why is Why.CANCELLED


async def test_the_fence_of_one_attempt_does_not_stop_the_next():
    cancellations, generation_id = Cancellations(), new_id()
    with cancellations.opened(generation_id) as zombie, cancellations.opened(generation_id) as heir:
        zombie.request(Why.FENCED)
        assert heir.why is None


async def test_all_are_asked_to_hand_over():
    cancellations = Cancellations()
    with cancellations.opened(new_id()) as one, cancellations.opened(new_id()) as other:
        cancellations.request_all(Why.HANDED_OVER)
        assert one.why is other.why is Why.HANDED_OVER
