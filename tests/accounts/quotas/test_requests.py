"""The request limit: exact, race-free, and never lost with Redis."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts import quotas
from accounts.exceptions import RequestsExceeded
from accounts.models import Tier, UsageRecord
from accounts.quotas.allowances import duration
from accounts.tasks import count_reservations_again
from foundation.ids import new_id
from tests.accounts.factories import make_tier, make_user
from tests.accounts.quotas.conftest import admitted_of, forget_everything, make_user_with, reserve, settle, use

pytestmark = pytest.mark.django_db


def test_each_request_leaves_room_for_one_less():
    user = make_user_with(requests=3)
    assert [reserve(user).requests_remaining for _ in range(3)] == [2, 1, 0]


def test_the_free_tier_allows_forty_requests_in_three_hours():
    user = make_user()
    Tier.objects.filter(pk="free").update(concurrent_generations=None)
    user.refresh_from_db()
    for _ in range(40):
        allowance = reserve(user)
    assert allowance.requests.window_seconds == 3 * 3600
    with pytest.raises(RequestsExceeded):
        reserve(user)


def test_a_refusal_says_when_to_come_back():
    user = make_user_with(requests=1, window_seconds=7200)
    reserve(user)
    with pytest.raises(RequestsExceeded) as refusal:
        reserve(user)
    assert refusal.value.message.startswith("You have sent 1 message within 2 hours, as many as your tier allows.")
    assert 7190 < refusal.value.retry_after_seconds <= 7200
    assert refusal.value.headers["x-ratelimit-limit-requests"] == "1"
    assert refusal.value.headers["x-ratelimit-remaining-requests"] == "0"
    assert refusal.value.headers["x-ratelimit-reset-requests"] in {"2h0m0s", "1h59m59s", "1h59m58s"}
    assert refusal.value.details["resets_at"].endswith("Z")
    assert (refusal.value.details["limit"], refusal.value.details["used"], refusal.value.details["remaining"]) == (
        1,
        1,
        0,
    )


def test_a_refused_request_is_not_counted():
    user = make_user_with(requests=1)
    reserve(user)
    for _ in range(5):
        with pytest.raises(RequestsExceeded):
            reserve(user)
    assert quotas.peek(user).requests.used == 1


def test_one_users_requests_leave_another_users_room_alone():
    tier = make_tier(requests=1)
    reserve(make_user(tier=tier.pk))
    assert reserve(make_user(tier=tier.pk)).requests_remaining == 0


def test_a_request_that_leaves_the_window_makes_room():
    user = make_user_with(requests=2, window_seconds=100)
    use(user, ago=timedelta(seconds=99.5))
    use(user, ago=timedelta(seconds=50))
    with pytest.raises(RequestsExceeded) as refusal:
        reserve(user)
    assert refusal.value.retry_after_seconds <= 0.5
    forget_everything()
    UsageRecord.objects.update(created_at=timezone.now() - timedelta(seconds=100))
    assert reserve(user).requests_remaining == 1


def test_what_a_rolled_back_transaction_reserved_is_given_back():
    user, generation_id = make_user_with(requests=1, concurrent_generations=1, tokens_per_minute=10), new_id()
    with transaction.atomic():
        reserve(user, generation_id=generation_id)
        transaction.set_rollback(True)
    for _ in range(2):
        quotas.release(user.pk, generation_id)
    assert reserve(user).requests_remaining == 0


def test_it_is_given_back_though_the_database_answers_nothing():
    user, generation_id = make_user_with(requests=1), new_id()
    with transaction.atomic():
        reserve(user, generation_id=generation_id)
        transaction.set_rollback(True)
        quotas.release(user.pk, generation_id)
    assert quotas.peek(user).requests.used == 0


def test_a_generation_that_used_nothing_leaves_its_request():
    user, generation_id = make_user_with(requests=2), new_id()
    reserve(user, generation_id=generation_id)
    settle(user, generation_id)
    assert quotas.peek(user).requests.used == 0
    forget_everything()
    assert quotas.peek(user).requests.used == 0


def test_looking_counts_nothing():
    user = make_user_with(requests=4)
    assert quotas.peek(user).requests_remaining == 4
    reserve(user)
    assert [quotas.peek(user).requests_remaining for _ in range(2)] == [3, 3]


def test_a_smaller_tier_refuses_until_enough_has_left_the_window():
    user = make_user_with(requests=10)
    for _ in range(5):
        reserve(user)
    user.tier = make_tier(requests=2)
    with pytest.raises(RequestsExceeded) as refusal:
        reserve(user)
    assert refusal.value.details["remaining"] == 0


def test_some_time_on_a_tier_with_a_shorter_window_makes_no_room_in_the_longer_one():
    user = make_user_with(requests=3, window_seconds=7200)
    for minutes in (30, 20, 10):
        use(user, ago=timedelta(minutes=minutes))
    longer, shorter = user.tier, make_tier(requests=3, window_seconds=60)
    for tier, used in [(longer, 3), (shorter, 0), (longer, 3), (shorter, 0)]:
        user.tier = tier
        assert quotas.peek(user).requests.used == used
        assert quotas.limits_of(user)[0].used == used
    reserve(user)
    user.tier = longer
    assert quotas.peek(user).requests.used == 4
    with pytest.raises(RequestsExceeded):
        reserve(user)


def test_a_tier_without_requests_admits_none():
    with pytest.raises(RequestsExceeded):
        reserve(make_user_with(requests=0))


@pytest.mark.django_db(transaction=True)
def test_of_500_requests_at_once_exactly_as_many_pass_as_there_is_room_for():
    assert admitted_of(500, make_user_with(requests=7)) == 7


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_exactly_while_redis_is_away(redis_is_away):
    user = make_user_with(requests=7)
    use(user)
    assert admitted_of(30, user, threads=6) == 6


def test_an_emptied_redis_is_filled_from_what_was_recorded():
    user, generation_id = make_user_with(requests=3), new_id()
    reserve(user, generation_id=generation_id)
    settle(user, generation_id, 1, 1)
    use(user, ago=timedelta(minutes=10))
    use(user, ago=timedelta(hours=2))
    forget_everything()
    assert quotas.peek(user).requests.used == 2
    assert reserve(user).requests_remaining == 0


def test_an_emptied_redis_still_counts_what_is_under_way():
    user = make_user_with(requests=3)
    for _ in range(2):
        reserve(user)
    forget_everything()
    assert reserve(user).requests_remaining == 0


def test_a_request_counted_while_redis_was_away_is_not_counted_twice_when_it_ends(redis_is_away):
    user, generation_id = make_user_with(requests=3), new_id()
    reserve(user, generation_id=generation_id)
    settle(user, generation_id, 1, 1)
    assert quotas.peek(user).requests.used == 1


def test_a_request_that_used_nothing_while_redis_was_away_makes_room_again(redis_is_away):
    user, generation_id = make_user_with(requests=1), new_id()
    reserve(user, generation_id=generation_id)
    settle(user, generation_id)
    assert reserve(user).requests_remaining == 0


def test_what_was_counted_while_redis_was_away_joins_the_counts_that_redis_kept(redis_switch):
    user, generation_id = make_user_with(requests=10, concurrent_generations=5), new_id()
    reserve(user)
    redis_switch.turn_off()
    reserve(user, generation_id=generation_id)
    redis_switch.turn_on()
    count_reservations_again()
    count_reservations_again()
    assert quotas.peek(user).requests.used == 2
    assert {limit.name: limit.used for limit in quotas.limits_of(user)}["concurrent_generations"] == 2
    settle(user, generation_id)
    count_reservations_again()
    assert quotas.peek(user).requests.used == 1


def test_durations_are_written_as_openai_writes_them():
    assert [duration(seconds) for seconds in (-1, 0, 0.2, 59.1, 60, 3600, 10_748)] == [
        "0s",
        "0s",
        "1s",
        "1m0s",
        "1m0s",
        "1h0m0s",
        "2h59m8s",
    ]
