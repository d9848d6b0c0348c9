"""No replica ever has more requests than its permits, and none is lost for long."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from foundation.redis import connect, connect_async
from inference import lua, queue
from inference.permits import Offer, Permits
from tests.inference.core.jobs import make_job, take, take_all, take_one
from tests.inference.core.waiting import until

A, B, C = (f"http://replica-{name}:80" for name in "abc")


def held(sync_client, url):
    return sync_client.zcard(f"{lua.base_key()}:permits:{url}")


@pytest.fixture
def permits(client):
    return Permits(client, "worker")


async def test_a_job_is_taken_only_with_a_free_permit(client, sync_client):
    queue.enqueue(sync_client, [make_job() for _ in range(10)])
    offers = {"small": (Offer(A, 2), Offer(B, 3))}
    taken = await take(client, offers, most=10)
    assert sorted(job.permit_url for job in taken) == [A] * 2 + [B] * 3
    assert await take_all(client, offers) == []
    assert queue.waiting_count(sync_client) == 5


async def test_the_replica_with_most_room_is_reserved(client, sync_client):
    queue.enqueue(sync_client, [make_job() for _ in range(4)])
    taken = await take(client, {"small": (Offer(A, 1), Offer(B, 100))}, most=4)
    assert [job.permit_url for job in taken] == [A, B, B, B]


async def test_a_permit_that_is_released_lets_the_next_one_in(client, sync_client, permits):
    queue.enqueue(sync_client, [make_job(), make_job()])
    offers = {"small": (Offer(A, 1),)}
    permit = permits.open(await take_one(client, offers))
    assert await take_one(client, offers) is None
    await permit.release()
    assert (await take_one(client, offers)).permit_url == A


async def test_a_release_wakes_those_who_wait_for_a_permit(client, sync_client, permits):
    queue.enqueue(sync_client, [make_job(), make_job()])
    permit = permits.open(await take_one(client, {"small": (Offer(A, 1),)}))
    async with client.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe(queue.wake_channel())
        await channel.get_message(timeout=5)
        await permit.release()
        async with asyncio.timeout(5):
            while await channel.get_message(timeout=1) is None:
                pass


async def test_an_exchange_takes_the_first_that_is_free_and_gives_back_the_other(sync_client, permits):
    full = permits.open(make_job())
    assert await full.exchange([Offer(A, 1)]) == A
    permit = permits.open(make_job())
    assert await permit.exchange([Offer(B, 1)]) == B
    assert await permit.exchange([Offer(A, 1), Offer(C, 1), Offer(B, 1)]) == C
    assert [held(sync_client, url) for url in (A, B, C)] == [1, 0, 1]


async def test_what_is_held_counts_as_free(permits):
    permit = permits.open(make_job())
    await permit.exchange([Offer(B, 1)])
    await permits.open(make_job()).exchange([Offer(A, 1)])
    assert await permit.exchange([Offer(A, 1), Offer(B, 1)]) == B


async def test_where_all_are_full_nothing_is_held(sync_client, permits):
    await permits.open(make_job()).exchange([Offer(A, 1)])
    permit = permits.open(make_job())
    await permit.exchange([Offer(B, 1)])
    assert await permit.exchange([Offer(A, 1)]) is None
    assert (held(sync_client, A), held(sync_client, B)) == (1, 0)


async def test_releasing_twice_gives_back_once(sync_client, permits):
    permit = permits.open(make_job())
    await permit.exchange([Offer(A, 5)])
    await permit.release()
    other = permits.open(permit.job)
    await other.exchange([Offer(A, 5)])
    await permit.release()
    assert held(sync_client, A) == 1


async def test_many_workers_never_exceed_a_replicas_permits(sync_client):
    most = 0
    limit = [Offer(A, 5), Offer(B, 3)]

    async def work(permits):
        nonlocal most
        for _ in range(15):
            permit = permits.open(make_job())
            url = await permit.exchange(limit)
            counts = [held(sync_client, A), held(sync_client, B)]
            most = max(most, sum(counts))
            assert counts[0] <= 5
            assert counts[1] <= 3
            assert permit.url == url
            await permit.release()

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect_async()) for _ in range(4)]
        every = [Permits(client, f"worker {number}") for number, client in enumerate(clients)]
        await asyncio.gather(*(work(permits) for permits in every for _ in range(8)))
    assert most == 8
    assert (held(sync_client, A), held(sync_client, B)) == (0, 0)


async def test_workers_that_take_at_once_never_exceed_a_replicas_permits(sync_client):
    queue.enqueue(sync_client, [make_job() for _ in range(100)])
    offers = {"small": (Offer(A, 7),)}
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect_async()) for _ in range(8)]
        shares = await asyncio.gather(*(take(client, offers, most=16, worker=str(client)) for client in clients))
    assert sum(map(len, shares)) == held(sync_client, A) == 7


async def test_no_permit_is_left_after_a_thousand_that_were_broken_off(sync_client, permits):
    async def one(number):
        permit = permits.open(make_job())
        exchange = asyncio.create_task(permit.exchange([Offer(A, 10_000), Offer(B, 10_000)]))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        exchange.cancel()
        await asyncio.gather(exchange, return_exceptions=True)
        await permit.release()

    for _ in range(10):
        await asyncio.gather(*map(one, range(100)))
    assert (held(sync_client, A), held(sync_client, B)) == (0, 0)
    assert permits.held_here(A) == permits.held_here(B) == 0


async def test_renewing_keeps_permits_and_says_how_many_everybody_holds(client, sync_client, permits):
    others = Permits(client, "other")
    opened = [(owner.open(make_job()), url) for owner, url in ((permits, A), (others, A), (others, B))]
    for permit, url in opened:
        await permit.exchange([Offer(url, 9)])
    sync_client.zadd(f"{lua.base_key()}:permits:{A}", {opened[0][0].holder: 9e15})
    await permits.renew([A, B])
    assert (permits.held(A), permits.held(B)) == (2, 1)
    scores = sync_client.zrange(f"{lua.base_key()}:permits:{A}", 0, -1, withscores=True)
    assert all(score < 9e15 for _, score in scores)


async def test_the_permits_of_a_killed_worker_run_out(client, sync_client):
    permit = Permits(client, "killed").open(make_job())
    await permit.exchange([Offer(A, 1)])
    assert 0 < sync_client.pttl(f"{lua.base_key()}:permits:{A}") <= 5000
    sync_client.zadd(f"{lua.base_key()}:permits:{A}", {permit.holder: 1})
    assert await Permits(client, "heir").open(make_job()).exchange([Offer(A, 1)]) == A


async def test_a_redis_that_was_emptied_knows_the_permits_again_after_one_renewal(own_valkey):
    async with connect_async() as client:
        permits = Permits(client, "worker")
        with connect() as sync_client:
            kept, ended = permits.open(make_job()), permits.open(make_job())
            for permit in (kept, ended):
                await until(lambda permit=permit: permit.exchange([Offer(A, 2)]))
            own_valkey.command("FLUSHALL")
            await ended.release()
            await permits.renew([A])
            assert held(sync_client, A) == 1
            assert await permits.open(make_job()).exchange([Offer(A, 1)]) is None


async def test_a_redis_that_was_emptied_gives_no_permit_before_all_workers_have_renewed_theirs(own_valkey):
    offers = {"small": (Offer(A, 1),)}
    async with connect_async() as client:
        busy, idle = Permits(client, "busy"), Permits(client, "idle")
        holding = busy.open(make_job())
        await until(lambda: holding.exchange([Offer(A, 1)]))
        own_valkey.command("FLUSHALL")
        with connect() as sync_client:
            queue.enqueue(sync_client, [make_job()])
        assert await take_all(client, offers) == []
        assert await idle.open(make_job()).exchange([Offer(A, 1)]) is None
        await busy.renew([A])
        await until(lambda: _gives_permits(client))
        assert await take_all(client, offers) == []
        await holding.release()
        assert [job.permit_url for job in await take_all(client, offers)] == [A]


async def _gives_permits(client):
    permit = Permits(client, "third").open(make_job())
    given = await permit.exchange([Offer(B, 1)])
    await permit.release()
    return given


async def test_while_redis_is_away_a_worker_goes_by_what_it_holds_itself(own_valkey):
    async with connect_async() as client:
        permits = Permits(client, "worker")
        own_valkey.stop()
        urls = [await permits.open(make_job()).exchange([Offer(A, 1), Offer(B, 1)]) for _ in range(3)]
        assert urls == [A, B, None]
        own_valkey.start()
        await until(lambda: _renewed(permits))


async def _renewed(permits):
    await permits.renew([A])
    return permits.held(A) == 1
