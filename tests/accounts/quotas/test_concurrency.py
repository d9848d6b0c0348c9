"""How many answers may be under way at once."""

import pytest

from accounts import quotas
from accounts.exceptions import ConcurrencyExceeded
from accounts.models import TokenReservation
from accounts.quotas import reserving
from foundation.ids import new_id
from tests.accounts import settling
from tests.accounts.quotas.conftest import admitted_of, forget_everything, make_user_with, reserve, settle

pytestmark = pytest.mark.django_db


def test_an_end_makes_room():
    user, first = make_user_with(concurrent_generations=2), new_id()
    reserve(user, generation_id=first)
    reserve(user)
    with pytest.raises(ConcurrencyExceeded) as refused:
        reserve(user)
    assert refused.value.details == {
        "name": "concurrent_generations", "limit": 2, "used": 2, "remaining": 0, "resets_at": None
    }  # fmt: skip
    assert refused.value.retry_after_seconds == 5
    settle(user, first, 1, 1)
    reserve(user)


def test_an_end_that_redis_was_not_told_of_locks_nobody_out():
    user, first = make_user_with(concurrent_generations=1), new_id()
    reserve(user, generation_id=first)
    settling.settle(
        generation_id=first, user_id=user.pk, conversation_id=None, model="small",
        tokens_in=1, tokens_cached=0, tokens_out=1,
    )  # fmt: skip
    reserve(user)


def test_a_place_of_which_the_database_knows_nothing_is_kept_for_a_transaction_under_way(monkeypatch):
    user = make_user_with(concurrent_generations=1)
    reserve(user)
    TokenReservation.objects.all().delete()
    with pytest.raises(ConcurrencyExceeded):
        reserve(user)
    monkeypatch.setattr(reserving, "_UNKNOWN_AFTER_MS", 0)
    reserve(user)


def test_an_emptied_redis_counts_what_is_under_way():
    user = make_user_with(concurrent_generations=2)
    reserve(user)
    forget_everything()
    reserve(user)
    with pytest.raises(ConcurrencyExceeded):
        reserve(user)


def test_an_end_after_redis_was_emptied_makes_room():
    user, first = make_user_with(concurrent_generations=2), new_id()
    reserve(user, generation_id=first)
    forget_everything()
    reserve(user)
    settle(user, first, 1, 1)
    reserve(user)


@pytest.mark.django_db(transaction=True)
def test_of_500_at_once_exactly_as_many_pass_as_there_are_places():
    user = make_user_with(concurrent_generations=7)
    assert admitted_of(500, user) == 7
    assert TokenReservation.objects.count() == 7
    assert quotas.peek(user).requests.used == 7


@pytest.mark.django_db(transaction=True)
def test_places_hold_exactly_while_redis_is_away(redis_is_away):
    assert admitted_of(60, make_user_with(concurrent_generations=7), threads=6) == 7


@pytest.mark.django_db(transaction=True)
def test_places_hold_exactly_after_redis_was_emptied():
    user = make_user_with(concurrent_generations=7)
    assert admitted_of(3, user) == 3
    forget_everything()
    assert admitted_of(100, user) == 4
