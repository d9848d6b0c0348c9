"""The tokens of the last minute."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import quotas
from accounts.exceptions import TokensExceeded
from accounts.models import TokenReservation, UsageRecord
from foundation.ids import new_id
from tests.accounts.quotas.conftest import admitted_of, forget_everything, make_user_with, reserve, settle, use

pytestmark = pytest.mark.django_db


def minute_of(user):
    return next(limit for limit in quotas.limits_of(user) if limit.name == "tokens_per_minute")


def test_a_reservation_counts_fully_and_its_end_gives_back_what_it_did_not_use():
    user, generation_id = make_user_with(tokens_per_minute=100), new_id()
    reserve(user, 90, generation_id=generation_id)
    with pytest.raises(TokensExceeded):
        reserve(user, 11)
    settle(user, generation_id, 20, 5)
    assert minute_of(user).used == 25
    reserve(user, 75)
    assert minute_of(user).remaining == 0


def test_a_refusal_says_when_there_is_room():
    user = make_user_with(tokens_per_minute=100)
    reserve(user, 90)
    with pytest.raises(TokensExceeded) as refused:
        reserve(user, 11)
    assert 58 < refused.value.retry_after_seconds <= 60
    assert refused.value.details["name"] == "tokens_per_minute"
    assert (refused.value.details["limit"], refused.value.details["used"], refused.value.details["needed"]) == (
        100,
        90,
        11,
    )
    assert refused.value.headers["x-ratelimit-limit-tokens"] == "100"
    assert refused.value.headers["x-ratelimit-remaining-tokens"] == "10"


def test_room_comes_when_as_many_have_left_as_are_needed():
    user = make_user_with(tokens_per_minute=100)
    for ago in (50, 30, 10):
        use(user, ago=timedelta(seconds=ago), tokens=30)
    for wanted, seconds in ((35, 10), (65, 30), (95, 50)):
        with pytest.raises(TokensExceeded) as refused:
            reserve(user, wanted)
        assert seconds - 5 < refused.value.retry_after_seconds <= seconds


def test_a_wish_that_alone_is_more_than_the_minute_allows_waits_for_an_empty_one():
    user, generation_id = make_user_with(tokens_per_minute=100), new_id()
    reserve(user, 500, generation_id=generation_id)
    with pytest.raises(TokensExceeded):
        reserve(user, 500)
    settle(user, generation_id)
    reserve(user, 500)


def test_what_is_older_than_a_minute_counts_no_more():
    user = make_user_with(tokens_per_minute=100)
    use(user, ago=timedelta(seconds=61), tokens=100)
    reserve(user, 100)


def test_an_emptied_redis_is_filled_from_what_was_used_and_what_is_under_way():
    user = make_user_with(tokens_per_minute=100)
    reserve(user, 40)
    use(user, ago=timedelta(seconds=20), tokens=30)
    forget_everything()
    with pytest.raises(TokensExceeded):
        reserve(user, 31)
    reserve(user, 30)


def test_a_window_that_redis_kept_is_not_filled_twice():
    user = make_user_with(tokens_per_minute=100)
    first = new_id()
    reserve(user, 40, generation_id=first)
    settle(user, first, 10, 10)
    forget_everything()
    assert minute_of(user).used == 20
    reserve(user, 80)
    assert minute_of(user).used == 100


@pytest.mark.django_db(transaction=True)
def test_of_500_at_once_exactly_as_many_pass_as_the_minute_has_room_for():
    assert admitted_of(500, make_user_with(tokens_per_minute=799), tokens=100) == 7


@pytest.mark.django_db(transaction=True)
def test_the_minute_holds_exactly_while_redis_is_away(redis_is_away):
    assert admitted_of(60, make_user_with(tokens_per_minute=799), threads=6, tokens=100) == 7


def test_while_redis_is_away_a_refusal_says_when_there_is_room(redis_is_away):
    user = make_user_with(tokens_per_minute=100)
    reserve(user, 90)
    TokenReservation.objects.update(created_at=timezone.now() - timedelta(seconds=20))
    with pytest.raises(TokensExceeded) as refused:
        reserve(user, 11)
    assert 35 < refused.value.retry_after_seconds <= 40
    assert not UsageRecord.objects.exists()
