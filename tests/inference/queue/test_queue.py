"""The queue gives each job to one taker, the most urgent first, and may forget everything without harm."""

import asyncio

import pytest
import redis
from django.conf import settings

from accounts.models import tier
from foundation.ids import new_id
from foundation.redis import connect, connect_async
from inference import queue
from inference.jobs import PRIORITY_CLASSES
from inference.permits import Offer
from inference.queue import Place
from tests.inference.core.jobs import PLENTY, URL, make_job, take, take_all, take_one
from tests.inference.core.waiting import until
from tests.inference.queue.waiting_time import let_pass


def test_every_class_that_a_tier_may_have_is_known_to_the_queue():
    assert {name for name, _ in tier.PRIORITY_CLASSES} <= set(PRIORITY_CLASSES)


async def test_the_more_urgent_class_goes_first(client, sync_client):
    jobs = [make_job(each) for each in reversed(PRIORITY_CLASSES)]
    queue.enqueue(sync_client, jobs)
    assert await take_all(client) == list(reversed(jobs))


async def test_within_a_class_the_first_user_to_come_goes_first(client, sync_client):
    jobs = [make_job() for _ in range(20)]
    queue.enqueue(sync_client, jobs)
    assert await take_all(client) == jobs


async def test_several_are_taken_in_one_call_in_the_same_order(client, sync_client):
    jobs = [make_job(PRIORITY_CLASSES[number % 4]) for number in range(12)]
    queue.enqueue(sync_client, jobs)
    assert await take(client, most=20) == sorted(jobs, key=lambda job: job.rank)


async def test_a_job_that_has_waited_long_overtakes_more_urgent_ones(client, sync_client):
    patient, urgent = make_job("background"), make_job("enterprise")
    queue.enqueue(sync_client, [patient])
    let_pass(sync_client, queue.AGEING_SECONDS * 4)
    queue.enqueue(sync_client, [urgent])
    assert await take_all(client) == [patient, urgent]


async def test_a_job_that_has_waited_a_little_does_not(client, sync_client):
    patient, urgent = make_job("background"), make_job("enterprise")
    queue.enqueue(sync_client, [patient])
    let_pass(sync_client, queue.AGEING_SECONDS * 3 - 1)
    queue.enqueue(sync_client, [urgent])
    assert await take_all(client) == [urgent, patient]


async def test_no_more_than_one_take_in_five_is_out_of_turn(client, sync_client):
    queue.enqueue(sync_client, [make_job("free") for _ in range(10)])
    let_pass(sync_client, queue.AGEING_SECONDS * 10)
    queue.enqueue(sync_client, [make_job("plus") for _ in range(40)])
    taken = [job.priority_class for job in await take(client, most=50)]
    assert taken == (["free"] + ["plus"] * 4) * 10


async def test_a_job_enqueued_again_waits_once_and_keeps_its_place(client, sync_client):
    first, second = make_job(), make_job()
    queue.enqueue(sync_client, [first, second])
    queue.enqueue(sync_client, [first, first, second])
    assert await take_all(client) == [first, second]


async def test_a_job_that_was_taken_can_be_enqueued_again(client, sync_client):
    again = make_job()
    for _ in range(2):
        queue.enqueue(sync_client, [again])
        assert await take_one(client) == again
    assert await take_one(client) is None


async def test_a_job_that_was_removed_is_never_taken(client, sync_client):
    user = new_id()
    jobs = [make_job(user=user) for _ in range(3)]
    queue.enqueue(sync_client, jobs)
    queue.remove(sync_client, [jobs[0].generation_id, new_id()])
    assert await queue.place(client, jobs[1].generation_id) == Place(1, None)
    assert await take_all(client) == jobs[1:]


async def test_after_all_was_lost_the_queue_begins_anew(client, sync_client):
    jobs = [make_job() for _ in range(3)]
    queue.enqueue(sync_client, jobs)
    for name in sync_client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*"):
        sync_client.delete(name)
    assert await take_one(client) is None
    queue.enqueue(sync_client, jobs)
    assert await until(lambda: take_all(client)) == jobs


PARTS = ("jobs", "deadlines", "aliases", "user:small:2:*", "waiting:*", "shares:*", "turns:*", "members:*", "state")


@pytest.mark.parametrize("part", PARTS)
async def test_a_job_of_which_a_part_was_lost_can_be_enqueued_again(client, sync_client, part):
    """A Redis that throws keys away when it is full loses no job for good, and stops no other."""
    jobs = [make_job(), make_job()]
    queue.enqueue(sync_client, jobs)
    for name in sync_client.scan_iter(match=f"*{{queue}}:{part}"):
        sync_client.delete(name)
    taken = await take_all(client)
    queue.enqueue(sync_client, [job for job in jobs if job not in taken])
    taken += await take_all(client)
    assert sorted(taken, key=jobs.index) == jobs
    assert queue.waiting_count(sync_client) == 0


@pytest.mark.parametrize("part", PARTS)
async def test_a_job_of_which_a_part_was_lost_is_made_whole(client, sync_client, part):
    jobs = [make_job(), make_job()]
    queue.enqueue(sync_client, jobs)
    for name in sync_client.scan_iter(match=f"*{{queue}}:{part}"):
        sync_client.delete(name)
    queue.enqueue(sync_client, jobs)
    assert sorted(await take_all(client), key=jobs.index) == jobs
    assert await take_all(client) == []


async def test_taking_leaves_nothing_of_a_job_behind(client, sync_client):
    queue.enqueue(sync_client, [make_job() for _ in range(3)])
    await take_all(client)
    assert queue.waiting_count(sync_client) == 0
    left = {name.decode().split(":")[3] for name in sync_client.scan_iter(match="*{queue}*")}
    of_jobs = {"jobs", "deadlines", "waiting", "user", "shares", "turns", "members", "door", "aliases"}
    assert left & of_jobs == set()


async def test_a_job_past_its_deadline_comes_without_a_permit_and_before_all_others(client, sync_client):
    in_time, late = make_job("enterprise"), make_job("background", seconds=-1)
    queue.enqueue(sync_client, [in_time, late])
    assert [(job, job.permit_url) for job in await take_all(client)] == [(late, None), (in_time, URL)]


async def test_a_job_whose_model_has_no_replica_waits_until_its_deadline(client, sync_client):
    waits, late = make_job(), make_job(seconds=-1)
    queue.enqueue(sync_client, [waits, late])
    assert await take_all(client, {"small": ()}) == [late]
    assert await take_all(client) == [waits]


async def test_a_job_of_a_model_that_is_no_more_comes_without_a_permit_after_a_while(client, sync_client):
    """A worker may learn of a new model a moment after those who send to it."""
    unknown = make_job(model="gone")
    queue.enqueue(sync_client, [unknown])
    assert await take_all(client) == []
    let_pass(sync_client, queue.UNKNOWN_MODEL_SECONDS)
    (job,) = await take_all(client)
    assert (job, job.permit_url) == (unknown, None)


async def test_models_take_turns_and_none_waits_for_the_other(client, sync_client):
    jobs = {model: [make_job(model=model) for _ in range(3)] for model in ("small", "large", "full")}
    for some in jobs.values():
        queue.enqueue(sync_client, some)
    offers = {"small": (Offer(URL, 100),), "large": (Offer(URL, 100),), "full": ()}
    taken = [job.model for job in await take(client, offers, most=9)]
    assert sorted(taken[:2]) == sorted(taken[2:4]) == sorted(taken[4:]) == ["large", "small"]


async def test_a_place_counts_those_before_it_and_all_that_are_more_urgent(client, sync_client):
    waiting = [make_job("plus"), make_job("free"), make_job("free"), make_job("background")]
    queue.enqueue(sync_client, waiting)

    async def positions():
        places = [await queue.place(client, each.generation_id) for each in waiting]
        return [place and place.position for place in places]

    assert await positions() == [1, 2, 3, 4]
    await take_one(client)
    assert await positions() == [None, 1, 2, 3]


async def test_the_second_job_of_one_user_stands_behind_the_first_of_another(client, sync_client):
    alice = new_id()
    first, second, bobs = make_job(user=alice), make_job(user=alice), make_job()
    queue.enqueue(sync_client, [first, second, bobs])
    places = [(await queue.place(client, each.generation_id)).position for each in (first, bobs, second)]
    assert places == [1, 2, 3]
    assert await take_all(client) == [first, bobs, second]


async def test_a_job_that_never_waited_has_no_place(client):
    assert await queue.place(client, new_id()) is None


async def test_no_job_is_taken_by_two(sync_client):
    jobs = [make_job(PRIORITY_CLASSES[number % 4]) for number in range(200)]
    queue.enqueue(sync_client, jobs)
    async with connect_async() as one, connect_async() as other:
        shares = await asyncio.gather(take_all(one, worker="one"), take_all(other, worker="other"))
    taken = [each for share in shares for each in share]
    assert len(taken) == len(jobs)
    assert set(taken) == set(jobs)


async def test_enqueueing_wakes_those_who_wait(client, sync_client):
    async with client.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe(queue.wake_channel())
        await channel.get_message(timeout=5)
        queue.enqueue(sync_client, [make_job()])
        async with asyncio.timeout(5):
            while await channel.get_message(timeout=1) is None:
                pass


@pytest.mark.parametrize("count", [0, 1, 250])
async def test_any_number_can_be_enqueued_at_once(client, sync_client, count):
    queue.enqueue(sync_client, [make_job() for _ in range(count)])
    assert queue.waiting_count(sync_client) == count
    assert len(await take(client, most=1000)) == count


async def test_a_full_redis_keeps_no_half_of_a_job(own_valkey):
    kept = make_job()
    with connect() as sync_client:
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(redis.OutOfMemoryError):
            queue.enqueue(sync_client, [kept])
        own_valkey.command("CONFIG", "SET", "maxmemory", "0")
        queue.enqueue(sync_client, [kept])
        async with connect_async() as client:
            assert await until(lambda: take_all(client, PLENTY)) == [kept]
