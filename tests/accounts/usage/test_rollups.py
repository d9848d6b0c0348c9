"""The daily roll-ups."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.models import Count, Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import DailyUsage, RolledUpDay, TokenReservation, UsageRecord
from accounts.rollups import roll_up
from accounts.tasks import roll_up_usage
from foundation.ids import new_id
from tests.accounts.factories import bearer, make_key, make_user
from tests.accounts.usage.records import make_record

pytestmark = pytest.mark.django_db
DAY = date(2026, 3, 4)
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def user():
    return make_user()


def rows():
    names = ("user_id", "day", "model", "answers", "tokens_in", "tokens_cached", "tokens_out", "cost")
    return set(DailyUsage.objects.values_list(*names))


def test_a_day_is_summed_by_user_and_model():
    alice, bob = make_user(), make_user()
    for user, model, cost in (
        (alice, "small", "0.1"),
        (alice, "small", "0.2"),
        (alice, "large", "1"),
        (bob, "small", "3"),
    ):
        make_record(user, NOON, model=model, cost=cost)
    roll_up(DAY, DAY)
    assert rows() == {
        (alice.pk, DAY, "small", 2, 20, 8, 10, Decimal("0.3")),
        (alice.pk, DAY, "large", 1, 10, 4, 5, Decimal(1)),
        (bob.pk, DAY, "small", 1, 10, 4, 5, Decimal(3)),
    }


def test_the_task_run_three_times_changes_nothing_more():
    user = make_user()
    make_record(user, datetime.now(UTC))
    roll_up_usage(2)
    once = rows()
    assert len(once) == 1
    roll_up_usage(2)
    roll_up_usage(2)
    assert rows() == once


def test_an_answer_that_ended_after_midnight_is_of_the_day_it_was_reserved_on():
    user = make_user()
    make_record(user, NOON)
    roll_up(DAY, DAY)
    make_record(user, NOON + timedelta(hours=13), day=DAY)
    roll_up(DAY, DAY)
    assert rows() == {(user.pk, DAY, "small", 2, 20, 8, 10, Decimal(0))}


def test_what_used_nothing_is_no_answer():
    make_record(make_user(), NOON, tokens=(0, 0, 0))
    roll_up(DAY, DAY)
    assert rows() == set()


def test_what_the_records_no_longer_say_goes():
    make_record(make_user(), NOON)
    roll_up(DAY, DAY)
    UsageRecord.objects.all().delete()
    roll_up(DAY, DAY)
    assert rows() == set()


def test_days_outside_the_range_stay_as_they_are():
    user = make_user()
    for days in (-1, 0, 1):
        make_record(user, NOON + timedelta(days=days))
    roll_up(DAY, DAY)
    assert {day for _, day, *_ in rows()} == {DAY}


STEPS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(["add", "delete", "none"]))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(["add", "delete", "none"])), max_size=8)
)
def test_roll_ups_made_again_in_any_order_between_changes_are_what_the_records_say(user, steps):
    UsageRecord.objects.all().delete()
    for first, length, change in steps:
        if change == "add":
            make_record(user, NOON + timedelta(days=first), model=f"model-{length % 2}", cost="0.000000000001")
        if change == "delete":
            UsageRecord.objects.filter(day=DAY + timedelta(days=first)).delete()
        roll_up(DAY + timedelta(days=first), DAY + timedelta(days=first + length))
    for day in (4, 0, 2, 3, 1, 2):
        roll_up(DAY + timedelta(days=day), DAY + timedelta(days=day))
    sums = UsageRecord.objects.values_list("user_id", "day", "model").annotate(
        Count("pk"), Sum("tokens_in"), Sum("tokens_cached"), Sum("tokens_out"), Sum("cost")
    )
    assert rows() == set(sums)


def test_a_final_day_that_was_changed_afterwards_is_told_as_it_is_once_it_is_rolled_up_again(client, user):
    make_record(user, NOON)
    roll_up(DAY, DAY)
    query, headers = {"from": str(DAY), "to": str(DAY)}, bearer(make_key(user, ["read"]))
    UsageRecord.objects.update(tokens_out=50, cost="1.5")
    call_command("roll_up_usage", str(DAY), str(DAY))
    assert client.get("/v1/usage", query, headers=headers).json()["totals"] == {
        "in": 10, "cached": 4, "out": 50, "cost": "1.5", "answers": 1,
    }  # fmt: skip


def test_a_day_is_final_once_it_has_ended_with_nothing_under_way():
    user, today = make_user(), datetime.now(UTC).date()
    ahead, ended, busy = today, today - timedelta(days=4), today - timedelta(days=3)
    TokenReservation.objects.create(generation_id=new_id(), user=user, model="small", day=busy, tokens=10)
    roll_up(ended, ahead)
    final = set(RolledUpDay.objects.values_list("day", flat=True))
    assert ended in final
    assert not {busy, today} & final
    TokenReservation.objects.all().delete()
    roll_up(busy, busy)
    assert RolledUpDay.objects.filter(day=busy).exists()


@pytest.mark.django_db(transaction=True)
def test_three_at_once_agree():
    user = make_user()
    for number in range(50):
        make_record(user, NOON, model=f"model-{number % 5}")

    def run(_):
        try:
            roll_up(DAY, DAY)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, range(3)))
    assert {(model, answers) for _, _, model, answers, *_ in rows()} == {(f"model-{each}", 10) for each in range(5)}


def test_the_command_rolls_up_any_range():
    make_record(make_user(), NOON)
    call_command("roll_up_usage", "2026-03-01", "2026-03-31")
    assert len(rows()) == 1
    with pytest.raises(CommandError, match="before the first"):
        call_command("roll_up_usage", "2026-03-02", "2026-03-01")
