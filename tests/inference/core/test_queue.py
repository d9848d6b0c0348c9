"""The queue gives each job to one taker, the most urgent first, and may forget everything without harm."""

import asyncio

import pytest
import redis
from django.conf import settings

from accounts.models import tier
from foundation.ids import new_id
from foundation.redis import connect, connect_async
from inference import queue
from inference.jobs import PRIORITY_CLASSES, Job


def job(priority_class="free"):
    return Job(new_id(), priority_class)


def enqueue_in_the_past(client, job, seconds):
    """Enqueue a job as if that had been so many seconds ago: a stream's ids are times."""
    now, _ = client.time()
    entry = client.xadd(
        queue._class_key(job.priority_class), {"id": str(job.generation_id)}, f"{(now - seconds) * 1000}-1"
    )
    rank = PRIORITY_CLASSES.index(job.priority_class)
    client.hset(queue._waiting_key(), str(job.generation_id), f"{rank} {entry.decode()}")


async def take_all(client):
    taken = []
    while found := await queue.take(client):
        taken.append(found)
    return taken


def test_every_class_that_a_tier_may_have_is_known_to_the_queue():
    assert {name for name, _ in tier.PRIORITY_CLASSES} <= set(PRIORITY_CLASSES)


async def test_the_more_urgent_class_goes_first(client, sync_client):
    jobs = [job(each) for each in reversed(PRIORITY_CLASSES)]
    queue.enqueue(sync_client, jobs)
    assert await take_all(client) == list(reversed(jobs))


async def test_within_a_class_the_first_to_come_goes_first(client, sync_client):
    jobs = [job() for _ in range(20)]
    queue.enqueue(sync_client, jobs)
    assert await take_all(client) == jobs


async def test_a_job_that_has_waited_long_overtakes_more_urgent_ones(client, sync_client):
    patient, urgent = job("background"), job("enterprise")
    enqueue_in_the_past(sync_client, patient, queue.AGEING_SECONDS * 4 + 1)
    queue.enqueue(sync_client, [urgent])
    assert await take_all(client) == [patient, urgent]


async def test_a_job_that_has_waited_a_little_does_not(client, sync_client):
    patient, urgent = job("background"), job("enterprise")
    enqueue_in_the_past(sync_client, patient, queue.AGEING_SECONDS * 3 - 1)
    queue.enqueue(sync_client, [urgent])
    assert await take_all(client) == [urgent, patient]


async def test_a_job_enqueued_again_waits_once_and_keeps_its_place(client, sync_client):
    first, second = job(), job()
    queue.enqueue(sync_client, [first, second])
    queue.enqueue(sync_client, [first, first, second])
    assert await take_all(client) == [first, second]


async def test_a_job_that_was_taken_can_be_enqueued_again(client, sync_client):
    again = job()
    queue.enqueue(sync_client, [again])
    assert await queue.take(client) == again
    queue.enqueue(sync_client, [again])
    assert await queue.take(client) == again
    assert await queue.take(client) is None


async def test_a_job_whose_stream_was_lost_can_be_enqueued_again(client, sync_client):
    lost = job()
    queue.enqueue(sync_client, [lost])
    sync_client.delete(queue._class_key("free"))
    queue.enqueue(sync_client, [lost])
    assert await queue.take(client) == lost


async def test_after_all_was_lost_the_queue_begins_anew(client, sync_client):
    jobs = [job() for _ in range(3)]
    queue.enqueue(sync_client, jobs)
    for name in sync_client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*"):
        sync_client.delete(name)
    assert await queue.take(client) is None
    queue.enqueue(sync_client, jobs)
    assert await take_all(client) == jobs


async def test_taking_leaves_nothing_behind(client, sync_client):
    queue.enqueue(sync_client, [job() for _ in range(3)])
    await take_all(client)
    assert sync_client.hlen(queue._waiting_key()) == 0
    assert sync_client.xlen(queue._class_key("free")) == 0


async def test_a_place_counts_those_before_it_and_all_that_are_more_urgent(client, sync_client):
    waiting = [job("plus"), job("free"), job("free"), job("background")]
    queue.enqueue(sync_client, waiting)
    assert [await queue.position(client, each.generation_id) for each in waiting] == [1, 2, 3, 4]
    await queue.take(client)
    assert [await queue.position(client, each.generation_id) for each in waiting] == [None, 1, 2, 3]


async def test_a_job_that_never_waited_has_no_place(client):
    assert await queue.position(client, new_id()) is None


async def test_no_job_is_taken_by_two(sync_client):
    jobs = [job(PRIORITY_CLASSES[number % 4]) for number in range(200)]
    queue.enqueue(sync_client, jobs)
    async with connect_async() as one, connect_async() as other:
        taken = [each for share in await asyncio.gather(take_all(one), take_all(other)) for each in share]
    assert len(taken) == len(jobs)
    assert set(taken) == set(jobs)


async def test_enqueueing_wakes_those_who_wait(client, sync_client):
    async with client.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe(queue.wake_channel())
        await channel.get_message(timeout=5)
        queue.enqueue(sync_client, [job()])
        async with asyncio.timeout(5):
            while await channel.get_message(timeout=1) is None:
                pass


@pytest.mark.parametrize("jobs", [[], [job()]])
async def test_enqueueing_is_one_round_trip(sync_client, jobs):
    queue.enqueue(sync_client, jobs)
    assert sync_client.xlen(queue._class_key("free")) == len(jobs)


async def test_a_full_redis_keeps_no_half_of_a_job(own_valkey):
    kept = job()
    with connect() as sync_client:
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(redis.OutOfMemoryError):
            queue.enqueue(sync_client, [kept])
        own_valkey.command("CONFIG", "SET", "maxmemory", "0")
        queue.enqueue(sync_client, [kept])
        async with connect_async() as client:
            assert await take_all(client) == [kept]
