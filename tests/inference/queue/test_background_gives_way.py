"""A worker interrupts background work when people wait for its places, and no more of it than that."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from inference import lua, queue
from inference.cancellation import Stopped, Why
from inference.jobs import BACKGROUND
from inference.permits import Offer
from tests.inference.core.jobs import URL, make_job
from tests.inference.core.test_worker import working
from tests.inference.core.waiting import until
from tests.inference.queue.waiting_time import let_pass


class Handler:
    """Keeps each job until the test lets it go; background work lets itself be interrupted."""

    def __init__(self):
        self.in_hand = []
        self.ended = {}
        self.may_end = asyncio.Event()

    async def __call__(self, job, cancellation, permit):
        self.in_hand.append(job)
        cancellation.gives_way = job.gives_way
        try:
            async with cancellation:
                await self.may_end.wait()
            self.ended[job] = "whole"
        except Stopped as stopped:
            self.ended[job] = stopped.why
        finally:
            self.in_hand.remove(job)


@pytest.fixture
def handler():
    return Handler()


@asynccontextmanager
async def working_on(errands, client, sync_client, handler, *, permits, concurrency=16):
    """A worker that has begun these errands and looks again only when told."""
    offers = {"small": (Offer(URL, permits),)}
    async with working(client, handler, offers=offers, concurrency=concurrency, look_again_seconds=3600.0) as worker:
        await until(lambda: sync_client.pubsub_numsub(queue.wake_channel())[0][1] == 1)
        queue.enqueue(sync_client, errands)
        await until(lambda: len(handler.in_hand) == len(errands))
        try:
            yield worker
        finally:
            handler.may_end.set()


async def test_a_person_who_waits_gets_the_place_at_once(client, sync_client, handler):
    errand, person = make_job(BACKGROUND), make_job("free")
    async with working_on([errand], client, sync_client, handler, permits=1):
        queue.enqueue(sync_client, [person])
        await until(lambda: handler.in_hand == [person])
        assert handler.ended == {errand: Why.GAVE_WAY}
    assert sync_client.zcard(f"{lua.base_key()}:permits:{URL}") == 0


async def test_no_more_is_interrupted_than_people_wait(client, sync_client, handler):
    errands = [make_job(BACKGROUND) for _ in range(3)]
    async with working_on(errands, client, sync_client, handler, permits=4):
        people = [make_job("free"), make_job("free")]
        queue.enqueue(sync_client, people)
        await until(lambda: all(person in handler.in_hand for person in people))
        assert list(handler.ended.values()) == [Why.GAVE_WAY]


async def test_the_newest_is_interrupted_first(client, sync_client, handler):
    errands = [make_job(BACKGROUND) for _ in range(2)]
    async with working_on(errands, client, sync_client, handler, permits=3):
        begun = list(handler.in_hand)
        queue.enqueue(sync_client, [make_job("free"), make_job("free")])
        await until(lambda: handler.ended)
        assert list(handler.ended) == [begun[-1]]


async def test_an_answer_that_has_lost_its_place_gets_one_too(client, sync_client, handler):
    """While it waits, no new job is offered a place of its model."""
    errand = make_job(BACKGROUND)
    async with working_on([errand], client, sync_client, handler, permits=2) as worker:
        worker.offers, worker.answers_waiting = dict, lambda: {"small": 1}
        sync_client.publish(queue.wake_channel(), "")
        await until(lambda: handler.ended == {errand: Why.GAVE_WAY})


async def test_while_places_are_free_nothing_is_interrupted(client, sync_client, handler):
    errand, person = make_job(BACKGROUND), make_job("free")
    async with working_on([errand], client, sync_client, handler, permits=2):
        queue.enqueue(sync_client, [person])
        await until(lambda: len(handler.in_hand) == 2)
        assert handler.ended == {}
    assert handler.ended == {errand: "whole", person: "whole"}


async def test_people_who_wait_for_another_model_interrupt_nothing(client, sync_client, handler):
    errand, other = make_job(BACKGROUND), make_job("free", model="large")
    offers = {"small": (Offer(URL, 1),), "large": (Offer(f"{URL}0", 1),)}
    async with working(client, handler, offers=offers, look_again_seconds=3600.0):
        queue.enqueue(sync_client, [errand, make_job("free", model="large"), other])
        await until(lambda: len(handler.in_hand) == 2)
        await until(lambda: queue.waiting_count(sync_client) == 1)
        handler.may_end.set()
        await until(lambda: len(handler.ended) == 3)
    assert handler.ended[errand] == "whole"


async def test_a_worker_with_its_hands_full_gives_way_too(client, sync_client, handler):
    """Another worker has room for the person, and only this one holds the place."""
    errand = make_job(BACKGROUND)
    async with working_on([errand], client, sync_client, handler, permits=1, concurrency=1):
        queue.enqueue(sync_client, [make_job("free")])
        await until(lambda: handler.ended == {errand: Why.GAVE_WAY})


async def test_what_was_let_in_before_people_is_not_interrupted(client, sync_client, handler):
    patient, people, looks = make_job(BACKGROUND), [make_job("free") for _ in range(3)], []
    queue.enqueue(sync_client, [patient])
    let_pass(sync_client, queue.AGEING_SECONDS * 4)
    queue.enqueue(sync_client, people)
    async with working(client, handler, offers={"small": ()}, look_again_seconds=0.01) as worker:
        worker.offers = lambda: looks.append(list(handler.in_hand)) or {"small": (Offer(URL, 1),)}
        await until(lambda: looks[-5:] == [[patient]] * 5)
        handler.may_end.set()
        await until(lambda: len(handler.ended) == 4)
    assert handler.ended[patient] == "whole"
