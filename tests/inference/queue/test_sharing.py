"""Users of a class share its model by tokens: nobody's backlog delays anybody else's message."""

import random
from collections import Counter

import pytest

from foundation.ids import new_id
from inference import lua, queue
from inference.jobs import PRIORITY_CLASSES, weighted_tokens
from inference.permits import Permits
from tests.inference.core.jobs import make_job, take_all, take_one
from tests.inference.queue.waiting_time import let_pass

COUNTERS = f"{lua.base_key()}:counters:small:{PRIORITY_CLASSES.index('free')}"


async def written(client, job, *, tokens_in=0, tokens_out=0):
    """See a job that was taken to its end."""
    permit = Permits(client, "worker").open(job)
    permit.tokens_in, permit.tokens_out = tokens_in, tokens_out
    await permit.release()


async def test_a_backlog_of_a_thousand_delays_another_users_message_by_one_job_at_most(client, sync_client):
    greedy = new_id()
    queue.enqueue(sync_client, [make_job(user=greedy) for _ in range(1000)])
    for _ in range(50):
        await written(client, await take_one(client), tokens_out=50)
    for _ in range(20):
        modest = make_job()
        queue.enqueue(sync_client, [modest])
        taken = [await take_one(client), await take_one(client)]
        assert modest in taken
        for job in taken:
            await written(client, job, tokens_out=50)


async def test_who_was_written_less_for_goes_first(client, sync_client):
    alice, bob = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=user) for user in (alice, bob) for _ in range(6)])
    for _ in range(2):
        job = await take_one(client)
        await written(client, job, tokens_out=1000 if job.user_id == alice else 100)
    users = [job.user_id for job in await take_all(client)]
    assert users[:5] == [bob] * 5


async def test_an_estimate_is_corrected_by_what_was_spent(client, sync_client):
    alice, bob = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=alice, tokens=5000), make_job(user=bob, tokens=100)])
    queue.enqueue(sync_client, [make_job(user=user) for user in (alice, bob)])
    await written(client, await take_one(client), tokens_out=1)
    await written(client, await take_one(client), tokens_out=1000)
    assert [job.user_id for job in await take_all(client)] == [alice, bob]


async def test_a_user_who_comes_back_is_lifted_to_the_least_of_those_who_wait(client, sync_client):
    """Time away earns no credit: the one who comes back shares from now on."""
    steady, away = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=away)])
    await written(client, await take_one(client), tokens_out=1)
    queue.enqueue(sync_client, [make_job(user=steady) for _ in range(40)])
    for _ in range(20):
        await written(client, await take_one(client), tokens_out=50)
    queue.enqueue(sync_client, [make_job(user=away) for _ in range(20)])
    users = Counter([(await take_one(client)).user_id for _ in range(10)])
    assert users == {steady: 5, away: 5}


async def test_a_user_who_was_written_much_for_is_not_forgotten_by_going_away(client, sync_client):
    heavy, light = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=heavy), make_job(user=light)])
    await written(client, await take_one(client), tokens_out=1000)
    await written(client, await take_one(client), tokens_out=10)
    queue.enqueue(sync_client, [*(make_job(user=light) for _ in range(5)), make_job(user=heavy)])
    assert [job.user_id for job in await take_all(client)] == [light] * 5 + [heavy]


async def test_newcomers_without_end_do_not_starve_a_user_who_was_written_much_for(client, sync_client):
    heavy = new_id()
    queue.enqueue(sync_client, [make_job(user=heavy), make_job()])
    await written(client, await take_one(client), tokens_out=100_000)
    waits = make_job(user=heavy)
    queue.enqueue(sync_client, [waits])
    let_pass(sync_client, queue.AGEING_SECONDS)
    taken = []
    for _ in range(6):
        queue.enqueue(sync_client, [make_job(), make_job()])
        taken.append(await take_one(client))
    assert waits in taken


@pytest.mark.parametrize("seed", range(5))
async def test_users_with_enough_to_do_get_equal_shares_whatever_their_answers_are_like(client, sync_client, seed):
    """The bound of the algorithm's paper: twice the most that can be under way of one user, here one job's tokens."""
    dice = random.Random(seed)
    users = {new_id(): dice.choice([20, 100, 400]) for _ in range(5)}
    for user in users:
        queue.enqueue(sync_client, [make_job(user=user, tokens=200) for _ in range(150)])
    spent = Counter(dict.fromkeys(users, 0))
    for _ in range(150):
        job = await take_one(client)
        tokens_out = dice.randint(1, 2 * users.get(job.user_id, 100))
        await written(client, job, tokens_in=10, tokens_out=tokens_out)
        if job.user_id in users:
            spent[job.user_id] += weighted_tokens(10, tokens_out)
        if dice.random() < 0.5:
            stranger = make_job(tokens=200)
            queue.enqueue(sync_client, [stranger])
    assert max(spent.values()) - min(spent.values()) <= 2 * weighted_tokens(10, 800)


async def test_what_users_were_written_is_forgotten_in_the_end_however_many_come(sync_client):
    queue.enqueue(sync_client, [make_job()])
    sync_client.expire(COUNTERS, 100)
    queue.enqueue(sync_client, [make_job()])
    assert 0 < sync_client.ttl(COUNTERS) <= 100


async def test_who_waits_is_still_charged_when_everybody_is_forgiven(client, sync_client):
    alice, bob = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=user) for user in (alice, bob) for _ in range(3)])
    sync_client.delete(COUNTERS)
    first = await take_one(client)
    await written(client, first, tokens_out=1000)
    assert {job.user_id for job in [await take_one(client), await take_one(client)]} == {alice, bob} - {first.user_id}
    assert sync_client.ttl(COUNTERS) > 0


async def test_classes_share_nothing_with_each_other(client, sync_client):
    user = new_id()
    queue.enqueue(sync_client, [make_job("plus", user=user)])
    await written(client, await take_one(client), tokens_out=5000)
    first, second = make_job("free", user=user), make_job("free")
    queue.enqueue(sync_client, [first, second])
    assert await take_all(client) == [first, second]
