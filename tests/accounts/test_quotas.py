"""The request limit: exact, race-free, and never lost with Redis."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from accounts import quotas, usage
from accounts.exceptions import RequestsExceeded
from accounts.models import RequestReservation, UsageRecord
from accounts.tasks import count_reservations_again
from foundation.ids import new_id
from foundation.redis import shared_client
from tests.accounts.factories import make_tier, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def redis_is_away(monkeypatch):
    """Point at a port where nothing listens; the returned function brings Redis back."""
    here = settings.REDIS_URL

    def point_at(url):
        monkeypatch.setattr(settings, "REDIS_URL", url)
        shared_client.cache_clear()

    point_at("redis://127.0.0.1:1/0")
    yield lambda: point_at(here)
    point_at(here)


def forget_everything():
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for name in client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*"):
            client.delete(name)


def record_use(user, *, ago=timedelta(), generation_id=None):
    generation_id = generation_id or new_id()
    usage.record(
        generation_id=generation_id,
        user_id=user.pk,
        conversation_id=uuid4(),
        model="small",
        tokens_in=1,
        tokens_cached=0,
        tokens_out=1,
    )
    UsageRecord.objects.filter(pk=generation_id).update(created_at=timezone.now() - ago)


def reserve_in_a_thread(user_id, tier):
    try:
        quotas.reserve_request(user_id, tier)
    except RequestsExceeded:
        return 0
    finally:
        connection.close()
    return 1


def admitted_of(attempts, user, tier, *, threads=20):
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: reserve_in_a_thread(user.pk, tier), range(attempts)))


def test_each_request_leaves_room_for_one_less():
    user, tier = make_user(), make_tier(requests=3)
    assert [quotas.reserve_request(user.pk, tier).remaining for _ in range(3)] == [2, 1, 0]


def test_the_free_tier_allows_forty_requests_in_three_hours():
    user = make_user()
    for _ in range(40):
        allowance = quotas.reserve_request(user.pk, user.tier)
    assert allowance.window_seconds == 3 * 3600
    with pytest.raises(RequestsExceeded):
        quotas.reserve_request(user.pk, user.tier)


def test_a_refusal_says_when_to_come_back():
    user, tier = make_user(), make_tier(requests=1, window_seconds=7200)
    quotas.reserve_request(user.pk, tier)
    with pytest.raises(RequestsExceeded) as refusal:
        quotas.reserve_request(user.pk, tier)
    assert 7190 < refusal.value.retry_after_seconds <= 7200
    assert refusal.value.headers["x-ratelimit-limit-requests"] == "1"
    assert refusal.value.headers["x-ratelimit-remaining-requests"] == "0"
    assert refusal.value.headers["x-ratelimit-reset-requests"] in {"2h0m0s", "1h59m59s", "1h59m58s"}
    assert refusal.value.details["resets_at"].endswith("Z")


def test_a_refused_request_is_not_counted():
    user, tier = make_user(), make_tier(requests=1)
    quotas.reserve_request(user.pk, tier)
    for _ in range(5):
        with pytest.raises(RequestsExceeded):
            quotas.reserve_request(user.pk, tier)
    assert quotas.peek(user.pk, tier).used == 1


def test_one_users_requests_leave_another_users_room_alone():
    tier = make_tier(requests=1)
    quotas.reserve_request(make_user().pk, tier)
    assert quotas.reserve_request(make_user().pk, tier).remaining == 0


def test_a_request_that_leaves_the_window_makes_room():
    user, tier = make_user(), make_tier(requests=2, window_seconds=100)
    record_use(user, ago=timedelta(seconds=99.5))
    record_use(user, ago=timedelta(seconds=50))
    with pytest.raises(RequestsExceeded) as refusal:
        quotas.reserve_request(user.pk, tier)
    assert refusal.value.retry_after_seconds <= 0.5
    forget_everything()
    UsageRecord.objects.update(created_at=timezone.now() - timedelta(seconds=100))
    assert quotas.reserve_request(user.pk, tier).remaining == 1


def test_the_same_request_is_counted_once():
    user, tier = make_user(), make_tier(requests=5)
    request_id = new_id()
    for _ in range(3):
        allowance = quotas.reserve_request(user.pk, tier, request_id=request_id)
    assert allowance.remaining == 4


def test_a_released_request_makes_room_again():
    user, tier = make_user(), make_tier(requests=1)
    allowance = quotas.reserve_request(user.pk, tier)
    quotas.release_request(user.pk, allowance)
    quotas.release_request(user.pk, allowance)
    assert quotas.reserve_request(user.pk, tier).remaining == 0


def test_a_request_is_given_back_though_the_database_answers_nothing():
    user, tier = make_user(), make_tier(requests=1)
    allowance = quotas.reserve_request(user.pk, tier)
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            quotas.release_request(user.pk, allowance)
    assert quotas.peek(user.pk, tier).used == 0


def test_looking_counts_nothing():
    user, tier = make_user(), make_tier(requests=4)
    assert quotas.peek(user.pk, tier).remaining == 4
    quotas.reserve_request(user.pk, tier)
    assert [quotas.peek(user.pk, tier).remaining for _ in range(2)] == [3, 3]


def test_a_smaller_tier_refuses_until_enough_has_left_the_window():
    user = make_user()
    for _ in range(5):
        quotas.reserve_request(user.pk, make_tier(requests=10))
    smaller = make_tier(requests=2)
    with pytest.raises(RequestsExceeded) as refusal:
        quotas.reserve_request(user.pk, smaller)
    assert refusal.value.details["remaining"] == 0


def test_a_tier_without_requests_admits_none():
    user, tier = make_user(), make_tier(requests=0)
    with pytest.raises(RequestsExceeded):
        quotas.reserve_request(user.pk, tier)


@pytest.mark.django_db(transaction=True)
def test_of_500_requests_at_once_exactly_as_many_pass_as_there_is_room_for():
    user, tier = make_user(), make_tier(requests=7)
    assert admitted_of(500, user, tier) == 7


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_exactly_while_redis_is_away(redis_is_away):
    user, tier = make_user(), make_tier(requests=7)
    record_use(user)
    assert admitted_of(30, user, tier, threads=6) == 6


def test_an_emptied_redis_is_filled_from_what_was_recorded():
    user, tier = make_user(), make_tier(requests=3)
    request_id = new_id()
    quotas.reserve_request(user.pk, tier, request_id=request_id)
    record_use(user, generation_id=request_id)
    record_use(user, ago=timedelta(minutes=10))
    record_use(user, ago=timedelta(hours=2))
    forget_everything()
    assert quotas.peek(user.pk, tier).used == 2
    assert quotas.reserve_request(user.pk, tier).remaining == 0


def test_an_emptied_redis_still_counts_what_is_under_way():
    user, tier = make_user(), make_tier(requests=3)
    under_way = [quotas.reserve_request(user.pk, tier).request_id for _ in range(2)]
    forget_everything()
    allowance = quotas.reserve_request(user.pk, tier, requests_under_way=lambda user_id: under_way)
    assert allowance.remaining == 0


def test_a_request_counted_while_redis_was_away_is_not_counted_twice_when_it_ends(redis_is_away):
    user, tier = make_user(), make_tier(requests=3)
    request_id = new_id()
    quotas.reserve_request(user.pk, tier, request_id=request_id)
    record_use(user, generation_id=request_id)
    assert quotas.peek(user.pk, tier).used == 1


def test_a_request_released_while_redis_is_away_makes_room_again(redis_is_away):
    user, tier = make_user(), make_tier(requests=1)
    quotas.release_request(user.pk, quotas.reserve_request(user.pk, tier))
    assert quotas.reserve_request(user.pk, tier).remaining == 0


def test_what_was_counted_while_redis_was_away_joins_the_window_that_redis_kept(redis_is_away):
    user, tier = make_user(), make_tier(requests=10)
    bring_back = redis_is_away
    bring_back()
    quotas.reserve_request(user.pk, tier)
    missed = RequestReservation.objects.create(request_id=new_id(), user=user)
    released = RequestReservation.objects.create(request_id=new_id(), user=make_user())
    count_reservations_again()
    count_reservations_again()
    assert quotas.peek(user.pk, tier).used == 2
    quotas.release_request(user.pk, quotas.RequestAllowance(10, 2, 1, timezone.now(), 0, missed.request_id))
    count_reservations_again()
    assert quotas.peek(user.pk, tier).used == 1
    assert quotas.peek(released.user_id, tier).used == 1


def test_durations_are_written_as_openai_writes_them():
    assert [quotas._duration(seconds) for seconds in (0, 0.2, 59.1, 60, 3600, 10_748)] == [
        "0s",
        "1s",
        "1m0s",
        "1m0s",
        "1h0m0s",
        "2h59m8s",
    ]
