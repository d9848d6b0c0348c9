"""Every end settles its reservation exactly once: one at a time, many at once, and what was left behind."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from accounts import quotas, usage
from accounts.models import TokenBudget, TokenReservation, UsageRecord
from foundation.database import in_database
from foundation.ids import new_id
from foundation.redis import connect_async
from tests.accounts import settling
from tests.accounts.factories import make_user
from tests.accounts.quotas.conftest import make_user_with, reserve, settle

pytestmark = pytest.mark.django_db

_SETTLE_MANY = f"""
WITH ended AS (
  SELECT generation_id, user_id, NULL::uuid AS conversation_id, model FROM accounts_tokenreservation
), {usage.SETTLE_ENDED}
SELECT count(*) FROM ended
"""


def budgets():
    return list(TokenBudget.objects.order_by("user_id", "day", "pool").values_list("user_id", "used", "reserved"))


def age(generation_ids):
    old = timezone.now() - timedelta(minutes=11)
    TokenReservation.objects.filter(pk__in=generation_ids).update(created_at=old)


def test_an_end_moves_what_was_used_and_frees_the_rest():
    user, generation_id = make_user(), new_id()
    reserve(user, 100, generation_id=generation_id)
    assert budgets() == [(user.pk, 0, 100)]
    settle(user, generation_id, 30, 12)
    assert budgets() == [(user.pk, 42, 0)]
    assert not TokenReservation.objects.exists()


def test_a_second_end_changes_nothing():
    user, generation_id = make_user(), new_id()
    reserve(user, 100, generation_id=generation_id)
    for tokens_out in (12, 50):
        settle(user, generation_id, 30, tokens_out)
    assert budgets() == [(user.pk, 42, 0)]
    assert UsageRecord.objects.get().tokens_out == 12


@pytest.mark.django_db(transaction=True)
def test_of_many_ends_at_once_one_settles():
    user, generation_id = make_user(), new_id()
    reserve(user, 100, generation_id=generation_id)

    def end(tokens_out):
        try:
            settle(user, generation_id, 0, tokens_out)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(end, range(1, 25)))
    record = UsageRecord.objects.get()
    assert budgets() == [(user.pk, record.tokens_out, 0)]


def test_what_was_never_reserved_is_paid_today_all_the_same():
    user = make_user()
    settle(user, new_id(), 3, 4)
    assert budgets() == [(user.pk, 7, 0)]


def test_one_statement_settles_many_of_several_users_days_and_pools(django_assert_num_queries):
    alice, bob = sorted((make_user_with(), make_user_with()), key=lambda user: user.pk)
    moved = new_id()
    reserve(alice, 10)
    reserve(alice, 20)
    reserve(alice, 40, generation_id=moved)
    reserve(bob, 80)
    yesterday = TokenReservation.objects.get(pk=moved).day - timedelta(days=1)
    TokenReservation.objects.filter(pk=moved).update(day=yesterday)
    TokenBudget.objects.filter(user=alice).update(reserved=30)
    TokenBudget.objects.create(user=alice, day=yesterday, reserved=40)
    assert budgets() == [(alice.pk, 0, 40), (alice.pk, 0, 30), (bob.pk, 0, 80)]
    with django_assert_num_queries(1), connection.cursor() as cursor:
        cursor.execute(
            _SETTLE_MANY,
            {"tokens_in": 3, "tokens_cached": 1, "tokens_out": 2, "cost": Decimal("0.5"), "model_version": "small-1"},
        )
        assert cursor.fetchone() == (4,)
    assert budgets() == [(alice.pk, 5, 0), (alice.pk, 10, 0), (bob.pk, 5, 0)]
    assert set(UsageRecord.objects.values_list("cost", "model_version")) == {(Decimal("0.5"), "small-1")}
    assert UsageRecord.objects.get(pk=moved).day == yesterday


def test_an_exact_cost_is_kept_to_the_last_digit():
    user, generation_id = make_user(), new_id()
    settling.settle(
        generation_id=generation_id, user_id=user.pk, conversation_id=None, model="small", model_version="small-1",
        tokens_in=7, tokens_cached=0, tokens_out=1, cost=Decimal("0.000000123456"),
    )  # fmt: skip
    assert UsageRecord.objects.get().cost == Decimal("0.000000123456")


def test_reservations_whose_generation_is_gone_are_released_with_nothing_used():
    user, gone, under_way, young = make_user_with(concurrent_generations=3), new_id(), new_id(), new_id()
    for generation_id in (gone, under_way, young):
        reserve(user, 100, generation_id=generation_id)
    age([gone, under_way])
    asked = []

    def is_under_way(ids):
        asked.extend(ids)
        return {under_way}

    assert [quotas.release_orphans(is_under_way) for _ in range(2)] == [1, 0]
    assert young not in asked
    assert budgets() == [(user.pk, 0, 200)]
    assert UsageRecord.objects.get().pk == gone
    assert {limit.name: limit.used for limit in quotas.limits_of(user)}["concurrent_generations"] == 2


def test_an_end_that_comes_before_the_upkeep_is_not_undone():
    user, generation_id = make_user(), new_id()
    reserve(user, 100, generation_id=generation_id)
    age([generation_id])

    def ends_meanwhile(ids):
        settle(user, generation_id, 5, 5)
        return set()

    assert quotas.release_orphans(ends_meanwhile) == 0
    assert budgets() == [(user.pk, 10, 0)]


def test_more_orphans_than_are_read_at_once_are_all_released(monkeypatch):
    monkeypatch.setattr("accounts.quotas.orphans._AT_ONCE", 2)
    user = make_user()
    ids = [new_id() for _ in range(5)]
    for generation_id in ids:
        reserve(user, 10, generation_id=generation_id)
    age(ids)
    assert quotas.release_orphans(lambda asked: set()) == 5


@pytest.mark.django_db(transaction=True)
async def test_a_worker_tells_of_an_end_in_its_own_loop():
    user, generation_id = await in_database(make_user_with, tokens_per_minute=100), new_id()
    await in_database(lambda: reserve(user, 100, generation_id=generation_id))
    client = connect_async()
    try:
        await quotas.settled_async(client, user.pk, generation_id, tokens_used=40)
    finally:
        await client.aclose()
    told = {limit.name: limit.used for limit in await in_database(quotas.limits_of, user)}
    assert told == {"requests": 1, "tokens_per_minute": 40}


def test_a_loss_of_redis_at_an_end_raises_nothing(redis_switch):
    user, generation_id = make_user_with(concurrent_generations=1), new_id()
    reserve(user, 100, generation_id=generation_id)
    redis_switch.turn_off()
    settle(user, generation_id, 5, 5)
    quotas.release(user.pk, generation_id)
    redis_switch.turn_on()
    reserve(user, 100)
