"""The tokens of a day: exact, whatever comes at once, whatever Redis has forgotten."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone

from accounts import quotas
from accounts.exceptions import TokensExceeded
from accounts.models import TokenBudget, TokenReservation, UsageRecord
from foundation.ids import new_id
from tests.accounts.quotas.conftest import admitted_of, forget_everything, make_user_with, reserve, settle

pytestmark = pytest.mark.django_db


def test_what_an_answer_may_use_is_kept_until_its_end():
    user, generation_id = make_user_with(tokens_per_day=100), new_id()
    assert reserve(user, 60, generation_id=generation_id).tokens_remaining == 40
    with pytest.raises(TokensExceeded):
        reserve(user, 41)
    settle(user, generation_id, 5, 10)
    assert reserve(user, 41).tokens_remaining == 44


def test_a_fresh_user_has_the_whole_day():
    user = make_user_with(tokens_per_day=100)
    assert quotas.peek(user).tokens_remaining == 100
    assert reserve(user, 100).tokens_remaining == 0


def test_a_refusal_names_the_next_midnight_and_what_was_asked():
    user = make_user_with(tokens_per_day=100)
    reserve(user, 60)
    before = datetime.now(UTC)
    with pytest.raises(TokensExceeded) as refused:
        reserve(user, 41)
    midnight = (before + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    details = refused.value.details
    assert details.pop("resets_at") == midnight.isoformat().replace("+00:00", "Z")
    assert details == {"name": "tokens_per_day", "limit": 100, "used": 60, "remaining": 40, "needed": 41}
    assert abs(refused.value.retry_after_seconds - (midnight - before).total_seconds()) < 60
    assert refused.value.headers["x-ratelimit-remaining-tokens"] == "40"
    assert refused.value.headers["x-ratelimit-remaining-requests"] == "999"


def test_a_refusal_counts_nowhere():
    user = make_user_with(requests=5, tokens_per_day=100, tokens_per_minute=1000, concurrent_generations=2)
    for _ in range(3):
        with pytest.raises(TokensExceeded):
            reserve(user, 101)
    assert {limit.used for limit in quotas.limits_of(user)} == {0}
    assert not TokenReservation.objects.exists()


def test_a_refusal_counts_nowhere_while_redis_is_away(redis_is_away):
    user = make_user_with(requests=5, tokens_per_day=100)
    with pytest.raises(TokensExceeded):
        reserve(user, 101)
    assert {limit.used for limit in quotas.limits_of(user)} == {0}


def test_without_a_limit_the_tokens_are_counted_all_the_same():
    user, generation_id = make_user_with(), new_id()
    assert reserve(user, 10**9, generation_id=generation_id).tokens is None
    settle(user, generation_id, 7, 8)
    budget = TokenBudget.objects.get(user=user)
    assert (budget.used, budget.reserved) == (15, 0)


@pytest.mark.django_db(transaction=True)
def test_of_500_at_once_exactly_as_many_pass_as_the_day_has_room_for():
    user = make_user_with(tokens_per_day=799)
    assert admitted_of(500, user, tokens=100) == 7
    assert TokenBudget.objects.get(user=user).reserved == 700 == 100 * TokenReservation.objects.count()
    assert quotas.peek(user).requests.used == 7


@pytest.mark.django_db(transaction=True)
def test_the_day_holds_exactly_while_redis_is_away(redis_is_away):
    assert admitted_of(60, make_user_with(tokens_per_day=799), threads=6, tokens=100) == 7


@pytest.mark.django_db(transaction=True)
def test_the_day_holds_exactly_when_redis_is_emptied():
    user = make_user_with(requests=7, tokens_per_day=799)
    assert admitted_of(5, user, tokens=100) == 5
    forget_everything()
    assert admitted_of(50, user, tokens=100) == 2


def test_yesterday_takes_nothing_from_today():
    user = make_user_with(tokens_per_day=100)
    yesterday = timezone.now().date() - timedelta(days=1)
    TokenBudget.objects.create(user=user, day=yesterday, used=100)
    assert reserve(user, 100).tokens_remaining == 0


def test_an_answer_that_ends_after_midnight_is_paid_on_the_day_on_which_it_was_reserved():
    user, generation_id = make_user_with(tokens_per_day=100), new_id()
    reserve(user, 60, generation_id=generation_id)
    yesterday = TokenReservation.objects.get().day - timedelta(days=1)
    TokenReservation.objects.update(day=yesterday)
    TokenBudget.objects.update(day=yesterday)
    assert reserve(user, 100, generation_id=new_id()).tokens_remaining == 0
    settle(user, generation_id, 20, 22)
    assert UsageRecord.objects.get().day == yesterday
    then, now = TokenBudget.objects.filter(user=user).order_by("day")
    assert [(each.used, each.reserved) for each in (then, now)] == [(42, 0), (0, 100)]


@pytest.mark.parametrize("moment", ["2026-03-29T00:59:59Z", "2026-10-25T01:30:00Z", "2018-11-04T02:59:59Z"])
@pytest.mark.parametrize("zone", ["Europe/Paris", "America/Sao_Paulo"])
def test_a_web_machines_clock_and_zone_decide_nothing(moment, zone):
    user = make_user_with(tokens_per_day=100)
    with time_machine.travel(datetime.fromisoformat(moment), tick=False), timezone.override(zone):
        first = reserve(user, 60)
        with pytest.raises(TokensExceeded):
            reserve(user, 60)
    assert first.tokens.resets_at > datetime.now(UTC)
    assert 0 < first.tokens.resets_in_seconds <= 86400
    assert TokenBudget.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_rollback_gives_the_tokens_back():
    user, generation_id = make_user_with(tokens_per_day=100, tokens_per_minute=100), new_id()
    with transaction.atomic():
        reserve(user, 100, generation_id=generation_id)
        transaction.set_rollback(True)
    quotas.release(user.pk, generation_id)
    assert reserve(user, 100).tokens_remaining == 0
