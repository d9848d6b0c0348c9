"""Looking where one stands, as every page does: PostgreSQL is asked for what was used once, not with each look."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import quotas
from accounts.models import ModelLimit
from accounts.quotas.rules import forget_own_limits
from foundation.ids import new_id
from tests.accounts.quotas.conftest import forget_everything, make_user_with, reserve, settle, use

pytestmark = pytest.mark.django_db

LIMITS = {"requests": 5, "tokens_per_day": 1000, "tokens_per_minute": 1000, "concurrent_generations": 9}


@pytest.fixture
def user():
    user = make_user_with(**LIMITS)
    user.refresh_from_db()
    for model in ("dear", "rare"):
        ModelLimit.objects.create(tier=user.tier, model=model, requests_per_window=2, tokens_per_day=500)
    forget_own_limits()
    return user


def used(user):
    return {(limit.name, limit.model): limit.used for limit in quotas.limits_of(user) if limit.used}


def statements_of_a_look(user):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        quotas.limits_of(user)
    return len(captured)


def test_after_the_first_look_only_the_days_tokens_are_asked_for(user):
    quotas.limits_of(user)
    assert statements_of_a_look(user) == 1


def test_that_holds_too_for_who_has_used_one_pool_only_or_got_the_request_back(user):
    generation_id = new_id()
    reserve(user, generation_id=generation_id)
    quotas.limits_of(user)
    settle(user, generation_id)
    assert statements_of_a_look(user) == 1
    assert used(user) == {}


def test_what_is_known_to_be_empty_counts_what_comes(user):
    assert used(user) == {}
    reserve(user, 10, model="dear")
    reserve(user, 10)
    assert used(user) == {
        ("requests", None): 1, ("tokens_per_day", None): 10, ("tokens_per_minute", None): 20,
        ("concurrent_generations", None): 2, ("requests", "dear"): 1, ("tokens_per_day", "dear"): 10,
    }  # fmt: skip
    for _ in range(4):
        reserve(user)
    assert quotas.peek(user).requests_remaining == 0
    assert quotas.peek(user, "rare").requests_remaining == 2


def test_a_look_at_an_emptied_redis_tells_it_all_that_postgresql_knows(user):
    use(user, ago=timedelta(minutes=10))
    use(user, ago=timedelta(seconds=10), tokens=7, model="dear")
    reserve(user, 20)
    forget_everything()
    assert used(user)["requests", None] == 2
    assert statements_of_a_look(user) == 1
    assert (used(user)["requests", "dear"], used(user)["tokens_per_minute", None]) == (1, 27)
    assert used(user)["concurrent_generations", None] == 1


def test_an_empty_window_has_nothing_that_could_leave_it(user):
    for _ in range(2):
        requests = quotas.peek(user).requests
        assert (requests.used, requests.resets_in_seconds) == (0, 0)
