"""Background work delays nobody: it leaves a place to people, counts for nothing in their way, and still moves."""

import pytest

from foundation.ids import new_id
from inference import lua, overload, queue
from inference.jobs import BACKGROUND
from inference.permits import Offer, Permits
from tests.inference.core.jobs import make_job, take, take_all, take_one
from tests.inference.queue.waiting_time import let_pass

A, B = "http://replica-a:80", "http://replica-b:80"


def offers(permits):
    return {"small": (Offer(A, permits),)}


def held(sync_client, url=A):
    return sync_client.zcard(f"{lua.base_key()}:permits:{url}")


@pytest.fixture
def permits(client):
    return Permits(client, "worker")


async def taken(client, permits):
    return await queue.take(client, offers(permits), worker="worker", most=16)


async def test_the_last_free_place_of_several_is_left_to_people(client, sync_client):
    queue.enqueue(sync_client, [make_job(BACKGROUND) for _ in range(5)])
    assert len(await take_all(client, offers(3))) == 2
    person = make_job("free")
    queue.enqueue(sync_client, [person])
    assert await take_all(client, offers(3)) == [person]


async def test_where_there_is_one_place_only_background_work_has_it_while_nobody_else_waits(client, sync_client):
    queue.enqueue(sync_client, [make_job(BACKGROUND)])
    assert (await take_one(client, offers(1))).permit_url == A


async def test_the_last_place_is_left_however_long_background_work_has_waited(client, sync_client):
    queue.enqueue(sync_client, [make_job(BACKGROUND) for _ in range(3)])
    let_pass(sync_client, queue.AGEING_SECONDS * 10)
    assert len(await take_all(client, offers(2))) == 1


async def test_background_work_that_has_waited_long_moves_though_people_come_without_end(client, sync_client, permits):
    """One take in five, as for everybody whose turn has been due for long; and that one keeps its place."""
    patient = make_job(BACKGROUND)
    queue.enqueue(sync_client, [patient])
    let_pass(sync_client, queue.AGEING_SECONDS * 4)
    begun = []
    for _ in range(6):
        queue.enqueue(sync_client, [make_job("enterprise"), make_job("free")])
        job = await take_one(client, offers(1))
        begun.append(job)
        await permits.open(job).release()
    assert begun.count(patient) == 1
    (moved,) = [job for job in begun if job == patient]
    assert moved.is_before_people
    assert not moved.gives_way
    assert held(sync_client) == 0


async def test_a_turn_among_background_work_alone_is_not_before_people(client, sync_client):
    queue.enqueue(sync_client, [make_job(BACKGROUND, user=user) for user in (new_id(), new_id())])
    let_pass(sync_client, queue.AGEING_SECONDS * 4)
    assert all(job.gives_way for job in await take_all(client, offers(3)))


async def test_an_exchange_leaves_the_last_place_too(sync_client, permits):
    errand = permits.open(make_job(BACKGROUND))
    assert await errand.exchange([Offer(A, 1)]) == A
    await permits.open(make_job()).exchange([Offer(B, 2)])
    assert await errand.exchange([Offer(B, 2), Offer(A, 1)]) == A
    assert await permits.open(make_job()).exchange([Offer(B, 2)]) == B


async def test_a_take_says_how_many_people_wait_for_a_place(client, sync_client):
    queue.enqueue(sync_client, [make_job("plus"), make_job("free"), make_job("free"), make_job(BACKGROUND)])
    assert (await taken(client, 1)).waiting_people == {"small": 2}


async def test_people_who_find_a_place_and_background_work_are_not_said_to_wait_for_one(client, sync_client):
    queue.enqueue(sync_client, [make_job("plus"), make_job(BACKGROUND), make_job(BACKGROUND)])
    assert (await taken(client, 2)).waiting_people == {}
    assert (await taken(client, 2)).waiting_people == {}


async def test_what_gives_way_is_not_in_the_way_of_who_comes_to_the_door(client, sync_client, permits):
    await overload.report_capacity(client, "worker", concurrency=10, permits={"small": 1})
    queue.enqueue(sync_client, [make_job(BACKGROUND)])
    errand = permits.open(await take_one(client, offers(1)))
    assert at_the_door(sync_client).expected_wait_seconds == 0
    await errand.release()
    queue.enqueue(sync_client, [make_job("free")])
    await take_one(client, offers(1))
    assert at_the_door(sync_client).expected_wait_seconds > 0


async def test_permits_and_all_that_is_known_of_them_return_to_nothing(client, sync_client, permits):
    queue.enqueue(sync_client, [make_job(BACKGROUND) for _ in range(6)])
    opened = [permits.open(job) for job in await take(client, offers(4), most=16)]
    assert held(sync_client) == len(opened) == 3
    await permits.renew([A])
    for permit in opened:
        await permit.release()
    for name in (f"permits:{A}", "running:small", "yielding:small"):
        assert not sync_client.exists(f"{lua.base_key()}:{name}"), name


async def test_an_errands_time_is_not_taken_for_an_answers(client, sync_client, permits):
    queue.enqueue(sync_client, [make_job(BACKGROUND)])
    permit = permits.open(await take_one(client, offers(1)))
    permit.tokens_out = 5
    await permit.release()
    assert not sync_client.exists(f"{lua.base_key()}:service")


def at_the_door(sync_client):
    answer = overload.ask(sync_client, overload.Request(new_id(), new_id(), "free", "small", "", 120))
    sync_client.delete(*sync_client.keys(f"{lua.base_key()}:door:*"))
    return answer


async def test_a_worker_that_has_enough_background_work_gets_only_peoples(client, sync_client):
    errands, person = [make_job(BACKGROUND) for _ in range(3)], make_job("free")
    queue.enqueue(sync_client, errands)
    let_pass(sync_client, queue.AGEING_SECONDS * 10)
    queue.enqueue(sync_client, [person])

    async def begun(most_background):
        taken = await queue.take(client, offers(16), worker="worker", most=16, most_background=most_background)
        return taken.jobs

    assert await begun(0) == [person]
    assert len(await begun(2)) == 2
    assert await begun(0) == []
    assert len(await begun(5)) == 1
