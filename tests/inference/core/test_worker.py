"""The worker takes no more than it can do, outlives its handler and Redis, and leaves nothing half done."""

import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest_asyncio

from foundation.redis import connect, connect_async
from inference import cancellation, lua, queue
from inference.cancellation import Cancellations, Stopped, Why
from inference.jobs import BACKGROUND
from inference.permits import Offer, Permits
from inference.worker import Periodic, Worker, worker_name, workers_key
from tests.inference.core.jobs import PLENTY, URL, make_job
from tests.inference.core.waiting import until


class Handler:
    """Keeps each job until the test lets it go, and remembers what became of it."""

    def __init__(self):
        self.in_hand = []
        self.most_at_once = 0
        self.ended = {}
        self.may_end = asyncio.Event()

    async def __call__(self, job, cancellation, permit):
        self.in_hand.append(job)
        self.most_at_once = max(self.most_at_once, len(self.in_hand))
        try:
            async with cancellation:
                await self.may_end.wait()
            self.ended[job] = "whole"
        except Stopped as stopped:
            self.ended[job] = stopped.why
        finally:
            self.in_hand.remove(job)


def jobs(count):
    return [make_job() for _ in range(count)]


@asynccontextmanager
async def working(client, handler, *, offers=PLENTY, concurrency=4, drain_seconds=5.0, periodic=(), **settings):
    """Run a worker while the block lasts; then it must end by itself."""
    worker = Worker(
        client,
        handler,
        Cancellations(),
        Permits(client, "worker"),
        lambda: offers,
        concurrency,
        drain_seconds,
        periodic,
        **settings,
    )
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(10):
            await running


@pytest_asyncio.fixture
async def handler():
    return Handler()


async def test_of_background_work_a_worker_does_little_at_once_and_all_in_the_end(client, sync_client, handler):
    waiting = [make_job(BACKGROUND) for _ in range(10)]
    queue.enqueue(sync_client, waiting)
    async with working(client, handler, concurrency=32):
        await until(lambda: len(handler.in_hand) == 4)
        person = make_job()
        queue.enqueue(sync_client, [person])
        await until(lambda: person in handler.in_hand)
        handler.may_end.set()
        await until(lambda: len(handler.ended) == 11)
    assert handler.most_at_once == 5


async def test_every_job_is_done_once(client, sync_client, handler):
    handler.may_end.set()
    waiting = jobs(30)
    async with working(client, handler):
        queue.enqueue(sync_client, waiting)
        await until(lambda: len(handler.ended) == 30)
    assert handler.ended == dict.fromkeys(waiting, "whole")


async def test_no_more_jobs_are_in_hand_than_allowed(client, sync_client, handler):
    queue.enqueue(sync_client, jobs(10))
    async with working(client, handler, concurrency=3):
        await until(lambda: len(handler.in_hand) == 3)
        assert queue.waiting_count(sync_client) == 7
        handler.may_end.set()
        await until(lambda: len(handler.ended) == 10)
    assert handler.most_at_once == 3


async def test_a_handler_that_crashes_takes_nobody_with_it(client, sync_client):
    done = []

    async def handler(job, cancellation, permit):
        done.append(job)
        if len(done) % 2:
            raise ZeroDivisionError

    waiting = jobs(6)
    async with working(client, handler, concurrency=1):
        queue.enqueue(sync_client, waiting)
        await until(lambda: len(done) == 6)
    assert done == waiting


async def test_a_cancel_reaches_the_job_in_hand(client, sync_client, handler):
    wanted, other = jobs(2)
    queue.enqueue(sync_client, [wanted, other])
    async with working(client, handler):
        await until(lambda: len(handler.in_hand) == 2)
        await until(lambda: sync_client.pubsub_numsub(cancellation.cancel_channel())[0][1] == 1)
        cancellation.announce(sync_client, wanted.generation_id)
        await until(lambda: handler.ended)
        assert handler.ended == {wanted: Why.CANCELLED}
        handler.may_end.set()
    assert handler.ended[other] == "whole"


async def test_a_job_enqueued_again_does_not_take_the_first_one_out_of_reach(client, sync_client):
    """The sweeper may enqueue what a worker has just taken; the second taking finds nothing to do and ends."""
    (twice,) = jobs(1)
    begun, stopped = [], asyncio.Event()

    async def handler(job, cancellation, permit):
        begun.append(job)
        if len(begun) == 1:
            try:
                async with cancellation:
                    await asyncio.Event().wait()
            except Stopped:
                stopped.set()

    async with working(client, handler):
        queue.enqueue(sync_client, [twice])
        await until(lambda: len(begun) == 1)
        queue.enqueue(sync_client, [twice])
        await until(lambda: len(begun) == 2)
        cancellation.announce(sync_client, twice.generation_id)
        async with asyncio.timeout(5):
            await stopped.wait()


async def test_stopping_lets_the_work_in_hand_end_and_takes_no_more(client, sync_client, handler):
    waiting = jobs(3)
    queue.enqueue(sync_client, waiting)
    async with working(client, handler, concurrency=1) as worker:
        await until(lambda: handler.in_hand)
        worker.stop()
        handler.may_end.set()
    assert list(handler.ended.values()) == ["whole"]
    assert queue.waiting_count(sync_client) == 2


async def test_what_does_not_end_in_time_is_handed_over(client, sync_client, handler):
    queue.enqueue(sync_client, jobs(2))
    async with working(client, handler, drain_seconds=0.1) as worker:
        await until(lambda: len(handler.in_hand) == 2)
        worker.stop()
    assert list(handler.ended.values()) == [Why.HANDED_OVER] * 2


async def test_a_worker_is_known_while_it_lives(client, sync_client, handler):
    async with working(client, handler):
        await until(lambda: sync_client.zscore(workers_key(), worker_name()))
    assert sync_client.zscore(workers_key(), worker_name()) is None


async def test_periodic_work_that_fails_is_done_again(client, handler):
    tries = []

    async def fail():
        tries.append(1)
        raise ZeroDivisionError

    async with working(client, handler, periodic=(Periodic("fails", 0.01, fail),)):
        await until(lambda: len(tries) > 2)


async def test_periodic_work_keeps_its_pace(client, handler):
    """It is not made up for: after a slow round the next one comes at once, and only one."""
    running, at_once = 0, []

    async def work():
        nonlocal running
        running += 1
        at_once.append(running)
        await asyncio.sleep(0.02)
        running -= 1

    async with working(client, handler, periodic=(Periodic("slow", 0.001, work),)):
        await until(lambda: len(at_once) >= 5)
    assert max(at_once) == 1


async def test_a_worker_goes_on_after_redis_was_emptied(own_valkey, handler):
    handler.may_end.set()
    async with connect_async() as client:
        with connect() as sync_client:
            async with working(client, handler):
                queue.enqueue(sync_client, jobs(2))
                await until(lambda: len(handler.ended) == 2)
                own_valkey.command("FLUSHALL")
                queue.enqueue(sync_client, jobs(2))
                await until(lambda: len(handler.ended) == 4)


async def test_a_worker_goes_on_after_redis_was_started_anew(own_valkey, handler):
    async with connect_async() as client:
        with connect() as sync_client:
            async with working(client, handler):
                (first,) = jobs(1)
                queue.enqueue(sync_client, [first])
                await until(lambda: handler.in_hand)
                own_valkey.restart()
                (second,) = jobs(1)
                queue.enqueue(sync_client, [second])
                await until(lambda: len(handler.in_hand) == 2)
                await until(lambda: sync_client.pubsub_numsub(cancellation.cancel_channel())[0][1] == 1)
                cancellation.announce(sync_client, second.generation_id)
                await until(lambda: handler.ended == {second: Why.CANCELLED})
                handler.may_end.set()
            assert handler.ended[first] == "whole"


async def test_a_worker_whose_connections_are_killed_listens_again(own_valkey, handler):
    async with connect_async() as client:
        with connect() as sync_client:
            async with working(client, handler):
                (job,) = jobs(1)
                queue.enqueue(sync_client, [job])
                await until(lambda: handler.in_hand)
                await until(lambda: sync_client.pubsub_numsub(cancellation.cancel_channel())[0][1] == 1)
                own_valkey.command("CLIENT", "KILL", "TYPE", "pubsub")

                def is_heard():
                    # Again and again: the first may still go to the connection that is being given up.
                    cancellation.announce(sync_client, job.generation_id)
                    return handler.ended == {job: Why.CANCELLED}

                await until(is_heard)


async def test_a_worker_outlives_a_redis_that_refuses_writes(own_valkey, handler):
    async with connect_async() as client:
        with connect() as sync_client:
            async with working(client, handler):
                queue.enqueue(sync_client, jobs(1))
                await until(lambda: handler.in_hand)
                own_valkey.command("CONFIG", "SET", "maxmemory", "1")
                own_valkey.command("REPLICAOF", "127.0.0.1", "1")
                await until(lambda: own_valkey.command("INFO", "errorstats"))
                own_valkey.command("REPLICAOF", "NO", "ONE")
                own_valkey.command("CONFIG", "SET", "maxmemory", "0")
                sync_client.flushall()
                queue.enqueue(sync_client, jobs(1))
                await until(lambda: len(handler.in_hand) == 2)
                handler.may_end.set()


async def test_stopping_ends_though_redis_is_away(own_valkey, handler):
    async with connect_async() as client, working(client, handler):
        own_valkey.stop()


def held(sync_client):
    return sync_client.zcard(f"{lua.base_key()}:permits:{URL}")


async def test_a_worker_takes_no_more_than_there_are_permits(client, sync_client, handler):
    queue.enqueue(sync_client, jobs(5))
    async with working(client, handler, offers={"small": (Offer(URL, 2),)}):
        await until(lambda: len(handler.in_hand) == 2)
        assert (held(sync_client), queue.waiting_count(sync_client)) == (2, 3)
        handler.may_end.set()
        await until(lambda: len(handler.ended) == 5)
        await until(lambda: held(sync_client) == 0)
    assert handler.most_at_once == 2


async def test_a_permit_that_one_worker_gives_back_is_another_ones_at_once(client, sync_client):
    """It is told so: neither looks again by itself in this test."""
    one, other = Handler(), Handler()
    settings = {"offers": {"small": (Offer(URL, 1),)}, "look_again_seconds": 3600.0}
    async with connect_async() as second, working(client, one, **settings), working(second, other, **settings):
        await until(lambda: sync_client.pubsub_numsub(queue.wake_channel())[0][1] == 2)
        queue.enqueue(sync_client, jobs(2))
        await until(lambda: one.in_hand or other.in_hand)
        for each in (one, other):
            each.may_end.set()
        await until(lambda: len(one.ended) + len(other.ended) == 2)


async def test_the_permit_of_a_handler_that_crashes_is_given_back(client, sync_client):
    crashed = []

    async def handler(job, cancellation, permit):
        crashed.append(permit.url)
        raise ZeroDivisionError

    async with working(client, handler):
        queue.enqueue(sync_client, jobs(1))
        await until(lambda: crashed == [URL])
        await until(lambda: held(sync_client) == 0)


async def test_a_worker_keeps_its_permits_and_tells_what_there_is_room_for(own_valkey, handler):
    async with connect_async() as client:
        with connect() as sync_client:
            offers = {"small": (Offer(URL, 2), Offer(f"{URL}0", 3)), "large": ()}
            async with working(client, handler, offers=offers):
                queue.enqueue(sync_client, jobs(1))
                await until(lambda: handler.in_hand)
                own_valkey.command("FLUSHALL")
                await until(lambda: sync_client.exists(f"{lua.base_key()}:running:small"))
                await until(lambda: sync_client.hget(f"{lua.base_key()}:capacity", "worker"))
                report = orjson.loads(sync_client.hget(f"{lua.base_key()}:capacity", "worker"))
                handler.may_end.set()
            assert (report["room"], report["permits"]) == (4, {"small": 5, "large": 0})
            assert not sync_client.exists(f"{lua.base_key()}:capacity")
