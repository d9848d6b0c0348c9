"""The closing of months: once, whoever does it how often; nothing lost and nothing twice."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier

import pytest
import time_machine
from django.db import DataError, connection, transaction
from django.db.models import ProtectedError
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts import sanctions, tasks
from accounts.billing import closing, subscriptions
from accounts.billing.closing import CLOSES_AFTER, WAITS_AT_MOST, close_account, close_period
from accounts.billing.months import Month
from accounts.exceptions import InvalidRequest
from accounts.models import BillingMail, ClosedPeriod, Invoice, NumberSeries, Subscription, TokenReservation
from accounts.signals import invoice_issued
from tests.accounts.billing.making import at, close_due, make_plan, make_reservation, make_usage
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db

NOVEMBER = Month.of(at(2026, 11, 1))
AFTER = NOVEMBER.end + CLOSES_AFTER


def november_plan(price="30.00", *, since=NOVEMBER.start, included=None) -> Subscription:
    return subscriptions.subscribe(make_user(), make_plan(price, name=None, included=included), at=since)


def lines_of(invoice):
    return [(line.description, line.amount) for line in invoice.lines.all()]


def test_a_whole_month_costs_its_price_and_is_closed_once_however_often_it_is_asked_for():
    subscription = november_plan("30.00")
    with time_machine.travel(AFTER, tick=False):
        invoices = {close_period(subscription, NOVEMBER.start) for _ in range(3)}
        assert close_due(AFTER) == []
    (invoice,) = invoices
    assert (invoice.total, invoice.currency, invoice.status) == (Decimal("30.00"), "EUR", Invoice.Status.OPEN)
    assert (invoice.period_start, invoice.period_end) == (NOVEMBER.start, NOVEMBER.end)
    assert (invoice.number, invoice.due_at) == ("2026-000001", AFTER + timedelta(days=14))
    assert lines_of(invoice) == [(f"Plan {subscription.tier_id}, November 2026", Decimal("30.00"))]
    assert BillingMail.objects.filter(invoice=invoice).count() == 1


def test_a_month_is_not_closed_before_it_is_over_nor_before_the_one_before_it():
    subscription = november_plan(since=at(2026, 10, 10))
    for moment in (NOVEMBER.end - timedelta(seconds=1), AFTER - timedelta(seconds=1)):
        with time_machine.travel(moment, tick=False), pytest.raises(InvalidRequest):
            close_period(subscription, NOVEMBER.start)
    with time_machine.travel(AFTER, tick=False), pytest.raises(InvalidRequest):
        close_period(subscription, NOVEMBER.start)
    assert not ClosedPeriod.objects.exists()


def test_months_that_were_missed_are_closed_one_after_the_other():
    november_plan("30.00", since=at(2026, 10, 1))
    with time_machine.travel(at(2027, 3, 1, 2), tick=False):
        assert len(close_due(at(2027, 3, 1, 2))) == 5
    assert list(Invoice.objects.order_by("period_start").values_list("number", "period_start")) == [
        ("2027-000001", at(2026, 10, 1)),
        ("2027-000002", at(2026, 11, 1)),
        ("2027-000003", at(2026, 12, 1)),
        ("2027-000004", at(2027, 1, 1)),
        ("2027-000005", at(2027, 2, 1)),
    ]


def test_a_plan_taken_and_ended_inside_the_month_pays_its_share():
    subscription = november_plan("30.00", since=at(2026, 11, 11))
    subscriptions.end(subscription, at=at(2026, 11, 21))
    with time_machine.travel(AFTER, tick=False):
        invoice = close_period(subscription, NOVEMBER.start)
    assert invoice.total == Decimal("10.00")


FEBRUARY_OF_A_LEAP_YEAR = Month.of(at(2028, 2, 1))
DECEMBER = Month.of(at(2026, 12, 1))


@pytest.mark.parametrize(
    ("month", "changes", "amounts"),
    [
        (NOVEMBER, [("big", at(2026, 11, 16))], ["5.00", "15.00"]),  # up in the middle
        (NOVEMBER, [("big", NOVEMBER.start), ("small", at(2026, 11, 16))], ["15.00", "5.00"]),  # down
        (NOVEMBER, [("big", at(2026, 11, 11)), ("small", at(2026, 11, 21))], ["6.67", "10.00"]),  # up, down again
        (NOVEMBER, [("big", NOVEMBER.start)], ["30.00"]),  # at midnight of the first day
        (NOVEMBER, [("big", at(2026, 11, 30))], ["9.67", "1.00"]),  # at midnight of the last day
        (NOVEMBER, [("big", NOVEMBER.end)], ["10.00"]),  # at midnight after it
        (NOVEMBER, [("big", NOVEMBER.end - timedelta(microseconds=1))], ["10.00"]),
        (NOVEMBER, [("none", NOVEMBER.start)], []),
        (NOVEMBER, [("none", at(2026, 11, 2)), ("small", at(2026, 11, 30))], ["0.67"]),
        (FEBRUARY_OF_A_LEAP_YEAR, [("big", at(2028, 2, 29))], ["9.66", "1.03"]),
        (FEBRUARY_OF_A_LEAP_YEAR, [("none", at(2028, 2, 29))], ["9.66"]),
        (FEBRUARY_OF_A_LEAP_YEAR, [("big", at(2028, 2, 15, 12))], ["5.00", "15.00"]),
        (DECEMBER, [("big", at(2026, 12, 31))], ["9.68", "0.97"]),
        (DECEMBER, [("big", at(2026, 12, 31, 23, 59, 59))], ["10.00"]),  # a second costs less than half a cent
    ],
)
def test_a_change_of_plan_divides_the_month_to_the_moment(month, changes, amounts):
    plans = {"small": make_plan("10.00"), "big": make_plan("30.00")}
    subscription = subscriptions.subscribe(make_user(), plans["small"], at=month.start - timedelta(days=40))
    for choice, moment in changes:
        if choice == "none":
            subscriptions.end(subscription, at=moment)
        else:
            subscriptions.subscribe(subscription.user, plans[choice], at=moment)
    with time_machine.travel(month.end + CLOSES_AFTER, tick=False):
        close_due(month.end + CLOSES_AFTER)
    billed = Invoice.objects.filter(period_start=month.start)
    assert [line.amount for invoice in billed for line in invoice.lines.all()] == [Decimal(each) for each in amounts]


def test_a_price_that_rises_in_the_middle_counts_for_who_comes_after():
    plan, early, late = make_plan("30.00"), make_user(), make_user()
    subscriptions.subscribe(early, plan, at=NOVEMBER.start)
    plan.monthly_price = Decimal("60.00")
    plan.save()
    subscriptions.subscribe(early, plan, at=at(2026, 11, 10))
    subscriptions.subscribe(late, plan, at=at(2026, 11, 16))
    with time_machine.travel(AFTER, tick=False):
        close_due(AFTER)
    assert {invoice.user: invoice.total for invoice in Invoice.objects.all()} == {early: 30, late: 30}


def test_a_plan_that_is_taken_off_the_offer_goes_on_and_is_billed_and_cannot_be_deleted():
    subscription = november_plan("30.00")
    tier = subscription.tier
    tier.is_offered = False
    tier.save()
    with pytest.raises(ProtectedError):
        tier.delete()
    subscriptions.end(subscription, at=at(2026, 11, 16))
    with pytest.raises(ProtectedError):
        tier.delete()
    with time_machine.travel(AFTER, tick=False):
        assert close_period(subscription, NOVEMBER.start).total == Decimal("15.00")


def test_a_suspended_account_keeps_its_plan_and_is_billed_for_it():
    subscription = november_plan("30.00")
    sanctions.suspend(subscription.user, reason="Spam", by=None)
    with time_machine.travel(AFTER, tick=False):
        assert close_period(subscription, NOVEMBER.start).total == Decimal("30.00")


def test_a_plan_of_nobody_is_not_billed():
    subscription = november_plan("30.00")
    subscription.user.delete()
    with time_machine.travel(AFTER, tick=False):
        assert close_due(AFTER) == []


def test_a_month_that_cannot_be_closed_holds_up_no_other():
    broken, sound = november_plan("30.00"), november_plan("30.00")
    # As much as no column holds.
    for _ in range(2):
        make_usage(broken.user, "999999999999", at(2026, 11, 5))
    broken.spans.update(bills_overage=True)
    with time_machine.travel(AFTER, tick=False):
        tasks.close_months()
        due = closing.due(AFTER)
        assert set(due) == {broken.pk, sound.pk}
        with pytest.raises(DataError), transaction.atomic():
            tasks.close_months_of(str(broken.pk))
        tasks.close_months_of(str(sound.pk))
    assert Invoice.objects.get().subscription == sound


def test_invoices_are_in_the_currency_of_their_day(settings):
    subscription = november_plan("30.00", since=at(2026, 10, 1))
    with time_machine.travel(NOVEMBER.start + CLOSES_AFTER, tick=False):
        close_due(NOVEMBER.start + CLOSES_AFTER)
    settings.CURRENCY = "CHF"
    with time_machine.travel(AFTER, tick=False):
        close_due(AFTER)
    assert list(subscription.invoices.order_by("period_start").values_list("currency", flat=True)) == ["EUR", "CHF"]


def test_usage_is_billed_on_the_plan_of_its_time_and_not_outside_of_plans():
    user, small, big = make_user(), make_plan("0.00", included="1.00"), make_plan("0.00", included="4.00")
    subscription = subscriptions.subscribe(user, small, at=at(2026, 11, 11))
    subscriptions.change_plan(subscription, big, at=at(2026, 11, 16))
    subscriptions.end(subscription, at=at(2026, 11, 21))
    for cost, when in [
        ("100", at(2026, 11, 10, 23, 59, 59)),
        ("2.000000000001", at(2026, 11, 11)),
        ("3", at(2026, 11, 16)),
        ("100", at(2026, 11, 21)),
    ]:
        make_usage(user, cost, when)
    make_usage(make_user(), "100", at(2026, 11, 12))
    with time_machine.travel(AFTER, tick=False):
        invoice = close_period(subscription, NOVEMBER.start)
    # Five of thirty days include a sixth: 0.1666… of the one, 0.6666… of the other.
    assert [line.amount for line in invoice.lines.all()] == [Decimal("1.83"), Decimal("2.33")]
    period = ClosedPeriod.objects.get()
    assert (period.usage, period.overage) == (Decimal("5.000000000001"), Decimal("4.16"))


def test_a_month_with_nothing_to_pay_is_closed_without_an_invoice_or_a_number():
    subscription = november_plan("0.00", included="5.00")
    make_usage(subscription.user, "4.99", at(2026, 11, 5))
    with time_machine.travel(AFTER, tick=False):
        assert close_due(AFTER) == []
        assert close_period(subscription, NOVEMBER.start) is None
    assert ClosedPeriod.objects.get().invoice is None
    assert not NumberSeries.objects.exists()


def test_an_answer_that_ended_after_midnight_is_paid_by_the_day_that_reserved_it():
    subscription = november_plan("0.00", included="0.00")
    make_usage(subscription.user, "2.00", NOVEMBER.end + timedelta(minutes=5), day=NOVEMBER.last_day)
    for now, expected in ((AFTER, "2.00"), (NOVEMBER.next.end + CLOSES_AFTER, "0")):
        with time_machine.travel(now, tick=False):
            close_due(now)
        assert ClosedPeriod.objects.latest("period_start").overage == Decimal(expected)
    assert Invoice.objects.count() == 1


def test_a_month_waits_for_its_answers_under_way():
    subscription = november_plan("0.00", included="0.00")
    reservation = make_reservation(subscription.user, NOVEMBER.last_day)
    make_reservation(subscription.user, NOVEMBER.end.date())
    with time_machine.travel(AFTER, tick=False):
        assert close_due(AFTER) == []
        with pytest.raises(InvalidRequest):
            close_period(subscription, NOVEMBER.start)
    reservation.delete()
    make_usage(subscription.user, "1.00", AFTER, day=NOVEMBER.last_day)
    with time_machine.travel(AFTER + timedelta(hours=1), tick=False):
        (invoice_id,) = close_due(AFTER + timedelta(hours=1))
    assert Invoice.objects.get(pk=invoice_id).total == Decimal("1.00")


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "has ended"])
def test_what_ends_after_the_wait_is_billed_with_the_next_month_and_once(ends):
    subscription = november_plan("0.00", included="1.00")
    make_usage(subscription.user, "1.50", at(2026, 11, 5))
    make_reservation(subscription.user, NOVEMBER.last_day)
    if ends:
        subscriptions.end(subscription, at=NOVEMBER.end - timedelta(microseconds=1))
        moment = at(2026, 11, 20)
    else:
        moment = NOVEMBER.end + timedelta(days=3)
    late = NOVEMBER.end + WAITS_AT_MOST
    with time_machine.travel(late, tick=False):
        close_due(late)
    assert ClosedPeriod.objects.get().unsettled == 1
    TokenReservation.objects.all().delete()
    make_usage(subscription.user, "0.75", moment, day=NOVEMBER.last_day if not ends else moment.date())
    for month in (NOVEMBER.next, NOVEMBER.next.next):
        with time_machine.travel(month.end + CLOSES_AFTER, tick=False):
            close_due(month.end + CLOSES_AFTER)
    assert [invoice.total for invoice in Invoice.objects.order_by("period_start")] == [Decimal("0.50"), Decimal("0.75")]
    assert lines_of(Invoice.objects.latest("period_start")) == [
        ("Usage in November 2026 that ended after its invoice", Decimal("0.75"))
    ]
    november = ClosedPeriod.objects.earliest("period_start")
    assert (november.usage, november.overage, november.unsettled) == (Decimal("2.25"), Decimal("1.25"), 0)


def test_a_closed_month_is_not_rewritten_by_a_change_that_is_told_late():
    subscription = november_plan("30.00")
    with time_machine.travel(AFTER, tick=False):
        close_due(AFTER)
    subscriptions.change_plan(subscription, make_plan("60.00"), at=at(2026, 11, 16))
    december = NOVEMBER.next.end + CLOSES_AFTER
    with time_machine.travel(december, tick=False):
        close_due(december)
    assert [invoice.total for invoice in Invoice.objects.order_by("period_start")] == [Decimal(30), Decimal(60)]


def test_a_stretch_that_stripe_collects_and_one_by_invoice_are_each_paid_once():
    user, plan = make_user(), make_plan("30.00")
    subscription = subscriptions.subscribe(user, plan, provider="stripe", at=NOVEMBER.start)
    subscriptions.end(subscription, at=at(2026, 11, 21))
    subscriptions.subscribe(user, plan, at=at(2026, 11, 21))
    with time_machine.travel(AFTER, tick=False):
        assert close_period(subscription, NOVEMBER.start).total == Decimal("10.00")


def test_an_account_that_leaves_pays_what_it_used_until_then_and_its_invoice_stays():
    user, plan = make_user(name="Alice"), make_plan("30.00", included="0.00")
    subscriptions.subscribe(user, plan, at=at(2026, 10, 1))
    make_usage(user, "2.00", at(2026, 11, 10))
    leaves = at(2026, 11, 16)
    for expected in (2, 0):
        with time_machine.travel(leaves, tick=False):
            assert len(close_account(user, at=leaves)) == expected
    user.delete()
    newest = Invoice.objects.latest("period_start")
    assert (newest.total, newest.user, newest.customer_name) == (Decimal("17.00"), None, "Alice")
    with time_machine.travel(AFTER, tick=False):
        assert close_due(AFTER) == []


def test_an_account_without_a_plan_leaves_without_an_invoice():
    assert close_account(make_user(), at=AFTER) == []


@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 61 * 86_400), st.integers(0, 3)), max_size=8),
    used=st.lists(
        st.tuples(st.integers(0, 61 * 86_400 - 1), st.decimals(0, 50, places=12), st.integers(0, 7200)), max_size=10
    ),
)
def test_every_cost_on_a_plan_is_billed_in_one_month_whatever_was_changed_when(changes, used):
    user = make_user()
    plans = [make_plan("0.00", included="0.00") for _ in range(3)]
    start = NOVEMBER.start
    subscription = subscriptions.subscribe(user, plans[0], at=start)
    for seconds, choice in sorted(changes):
        moment = start + timedelta(seconds=seconds)
        if choice < 3:
            subscriptions.subscribe(user, plans[choice], at=moment)
        else:
            subscriptions.subscribe(user, plans[0], at=moment)
    for seconds, cost, late_seconds in used:
        reserved = start + timedelta(seconds=seconds)
        make_usage(user, cost, reserved + timedelta(seconds=late_seconds), day=reserved.date())
    end = NOVEMBER.next.end + CLOSES_AFTER
    with time_machine.travel(end, tick=False):
        close_due(end)
    periods = list(ClosedPeriod.objects.filter(subscription=subscription))
    assert sum(period.usage for period in periods) == sum(cost for _, cost, _ in used)
    invoices = Invoice.objects.filter(subscription=subscription)
    assert sum(invoice.total for invoice in invoices) == sum(period.overage for period in periods)
    for invoice in invoices:
        assert invoice.total == sum(line.amount for line in invoice.lines.all())


class Killed(Exception):
    """The process is gone: nothing after it runs."""


def killed_at(statement_number):
    """Return a wrapper of the connection's statements that ends the process at one of them."""
    seen = []

    def wrapper(execute, sql, parameters, many, context):
        seen.append(sql)
        if len(seen) == statement_number:
            raise Killed
        return execute(sql, parameters, many, context)

    return wrapper, seen


@pytest.mark.django_db(transaction=True)
def test_a_kill_between_any_two_statements_neither_loses_nor_doubles_an_invoice():
    with time_machine.travel(AFTER, tick=False):
        statement, expected, killed = 1, 0, True
        while killed:
            subscription = november_plan("30.00", included="1.00")
            subscriptions.end(subscription, at=NOVEMBER.end)
            make_usage(subscription.user, "3.00", at(2026, 11, 5))
            wrapper, _ = killed_at(statement)
            try:
                with connection.execute_wrapper(wrapper):
                    close_due(AFTER)
                killed = False
            except Killed:
                close_due(AFTER)
            expected, statement = expected + 1, statement + 1
    assert statement > 10
    invoices = Invoice.objects.order_by("number")
    assert [invoice.number for invoice in invoices] == [f"2026-{number:06}" for number in range(1, expected + 1)]
    assert {invoice.total for invoice in invoices} == {Decimal("32.00")}
    assert BillingMail.objects.count() == expected


@pytest.mark.django_db(transaction=True)
def test_workers_that_close_at_once_issue_one_invoice_each_month_with_numbers_without_gaps():
    for _ in range(5):
        november_plan("30.00", since=at(2026, 10, 1))
    together = Barrier(3)
    told = []

    def hear(invoice_id, **_):
        told.append(invoice_id)

    def close():
        try:
            together.wait(10)
            close_due(AFTER)
        finally:
            connection.close()

    invoice_issued.connect(hear)
    with time_machine.travel(AFTER, tick=False), ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(close) for _ in range(3)]:
            done.result()
    invoice_issued.disconnect(hear)
    numbers = sorted(Invoice.objects.values_list("number", flat=True))
    assert numbers == [f"2026-{number:06}" for number in range(1, 11)]
    assert sorted(told) == sorted(Invoice.objects.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
def test_an_invoice_that_was_rolled_back_gives_its_number_back_and_is_not_told():
    subscription, told = november_plan("30.00"), []

    def hear(invoice_id, **_):
        told.append(invoice_id)

    invoice_issued.connect(hear)
    with time_machine.travel(AFTER, tick=False):
        with transaction.atomic():
            close_period(subscription, NOVEMBER.start)
            transaction.set_rollback(True)
        assert told == []
        assert close_period(subscription, NOVEMBER.start).number == "2026-000001"
    invoice_issued.disconnect(hear)
    assert len(told) == 1
