"""Plans taken, changed, ended, and what becomes of those that are not paid."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.billing import subscriptions
from accounts.models import AuditLog, BillingMail, PlanSpan, Subscription
from accounts.signals import subscription_ended
from tests.accounts.billing.making import at, make_plan
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db

START = at(2026, 11, 3, 12)
Status = Subscription.Status


def spans_of(subscription):
    return list(subscription.spans.order_by("starts_at"))


def assert_no_gaps(spans):
    assert [span.ends_at for span in spans[:-1]] == [span.starts_at for span in spans[1:]]
    assert spans[-1].ends_at is None


def test_a_plan_is_taken_and_the_user_has_its_tier():
    user, plan = make_user(), make_plan("20.00", included="5.00")
    subscription = subscriptions.subscribe(user, plan, at=START)
    (span,) = spans_of(subscription)
    assert (span.tier, span.monthly_price, span.included_usage) == (plan, Decimal("20.00"), Decimal("5.00"))
    assert (span.starts_at, span.ends_at, span.bills_overage) == (START, None, True)
    user.refresh_from_db()
    assert user.tier == plan


def test_up_and_down_again_leaves_no_gap_and_no_overlap():
    user, small, big = make_user(), make_plan("10.00"), make_plan("30.00")
    subscription = subscriptions.subscribe(user, small, at=START)
    subscriptions.change_plan(subscription, big, at=START + timedelta(days=1))
    subscriptions.change_plan(subscription, small, at=START + timedelta(days=2))
    assert [span.tier for span in spans_of(subscription)] == [small, big, small]
    assert_no_gaps(spans_of(subscription))


def test_the_same_plan_again_changes_nothing_not_even_its_price():
    user, plan = make_user(), make_plan("10.00")
    subscription = subscriptions.subscribe(user, plan, at=START)
    plan.monthly_price = Decimal("99.00")
    plan.save()
    subscriptions.subscribe(user, plan, at=START + timedelta(days=1))
    subscriptions.change_plan(subscription, plan, at=START + timedelta(days=2))
    assert [(span.starts_at, span.monthly_price) for span in spans_of(subscription)] == [(START, Decimal("10.00"))]


def test_a_changed_price_counts_for_those_who_come_after():
    plan = make_plan("10.00")
    subscriptions.subscribe(make_user(), plan, at=START)
    plan.monthly_price = Decimal("12.00")
    plan.save()
    subscriptions.subscribe(make_user(), plan, at=START)
    assert sorted(PlanSpan.objects.values_list("monthly_price", flat=True)) == [Decimal("10.00"), Decimal("12.00")]


def test_of_changes_at_one_moment_the_last_holds():
    user, small, big = make_user(), make_plan(), make_plan("30.00")
    subscription = subscriptions.subscribe(user, small, at=START)
    subscriptions.change_plan(subscription, big, at=START)
    assert [(span.tier, span.starts_at) for span in spans_of(subscription)] == [(big, START)]


def test_a_change_that_is_told_late_begins_where_the_known_ends():
    user, small, big = make_user(), make_plan(), make_plan("30.00")
    subscription = subscriptions.subscribe(user, small, at=START)
    subscriptions.change_plan(subscription, big, at=START + timedelta(days=2))
    subscriptions.change_plan(subscription, small, at=START + timedelta(days=1))
    assert [span.tier for span in spans_of(subscription)] == [small, small]
    assert_no_gaps(spans_of(subscription))


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-3600, 86_400)), min_size=1, max_size=8))
def test_spans_never_overlap_nor_leave_gaps_whatever_is_chosen_when(changes):
    user, plans = make_user(), [make_plan() for _ in range(3)]
    subscription = subscriptions.subscribe(user, plans[0], at=START)
    moment = START
    for plan, seconds in changes:
        moment += timedelta(seconds=seconds)
        subscriptions.change_plan(subscription, plans[plan], at=moment)
        assert_no_gaps(spans_of(subscription))
        assert spans_of(subscription)[-1].tier == plans[plan]


def test_ending_leaves_the_free_tier_and_taking_a_plan_again_goes_on_with_the_same_subscription():
    user, plan = make_user(), make_plan()
    subscription = subscriptions.subscribe(user, plan, at=START)
    for _ in range(2):
        subscriptions.end(subscription, at=START + timedelta(days=1))
    user.refresh_from_db()
    assert (user.tier_id, subscription.status) == ("free", Status.ENDED)
    again = subscriptions.subscribe(user, plan, at=START + timedelta(days=3))
    assert (again.pk, again.status) == (subscription.pk, Status.ACTIVE)
    assert [span.ends_at for span in spans_of(again)] == [START + timedelta(days=1), None]


def test_what_has_ended_does_not_change_any_more():
    subscription = subscriptions.subscribe(make_user(), make_plan(), at=START)
    subscriptions.end(subscription, at=START + timedelta(days=1))
    subscriptions.change_plan(subscription, make_plan(), at=START + timedelta(days=2))
    assert subscription.status == Status.ENDED
    assert len(spans_of(subscription)) == 1


def test_another_provider_is_another_span():
    user, plan = make_user(), make_plan()
    subscriptions.subscribe(user, plan, at=START)
    subscription = subscriptions.subscribe(
        user, plan, provider="stripe", at=START + timedelta(days=1), stripe_subscription_id="sub_1"
    )
    assert [span.provider for span in spans_of(subscription)] == ["", "stripe"]
    assert Subscription.objects.get().stripe_subscription_id == "sub_1"


def test_a_failed_payment_leaves_time_and_a_second_failure_no_more_of_it():
    subscription = subscriptions.subscribe(make_user(), make_plan(), at=START)
    for days in (0, 5):
        subscriptions.payment_failed(subscription, at=START + timedelta(days=days))
    assert (subscription.status, subscription.grace_until) == (Status.PAST_DUE, START + timedelta(days=14))
    assert BillingMail.objects.filter(kind=BillingMail.Kind.PAYMENT_FAILED).count() == 1


def test_who_pays_in_time_is_active_again():
    user, plan = make_user(), make_plan()
    subscription = subscriptions.subscribe(user, plan, at=START)
    subscriptions.payment_failed(subscription, at=START)
    subscriptions.payment_succeeded(subscription, at=START + timedelta(days=13))
    assert subscriptions.end_graces(START + timedelta(days=15)) == 0
    user.refresh_from_db()
    assert (subscription.status, subscription.grace_until, user.tier) == (Status.ACTIVE, None, plan)


def test_what_the_system_ends_is_in_the_audit_log_once_and_names_nobody():
    user, plan = make_user(), make_plan()
    subscriptions.payment_failed(subscriptions.subscribe(user, plan, at=START), at=START)
    for _ in range(2):
        subscriptions.end_graces(START + timedelta(days=14))
    row = AuditLog.objects.get()
    assert (row.actor, row.action, row.subject_id) == (None, "plan_ended", str(user.pk))
    assert row.changes == {"tier": {"before": plan.pk, "after": "free"}}


def test_after_the_grace_the_account_is_on_the_free_tier_and_told_once(django_capture_on_commit_callbacks):
    user = make_user()
    subscription = subscriptions.subscribe(user, make_plan(), at=START)
    subscriptions.payment_failed(subscription, at=START)
    told = []

    def hear(subscription_id, **_):
        told.append(subscription_id)

    subscription_ended.connect(hear)
    with django_capture_on_commit_callbacks(execute=True):
        assert subscriptions.end_graces(START + timedelta(days=14) - timedelta(seconds=1)) == 0
        assert subscriptions.end_graces(START + timedelta(days=14)) == 1
        assert subscriptions.end_graces(START + timedelta(days=14)) == 0
    subscription_ended.disconnect(hear)
    user.refresh_from_db()
    subscription.refresh_from_db()
    assert (user.tier_id, subscription.status, told) == ("free", Status.ENDED, [subscription.pk])
    assert BillingMail.objects.filter(kind=BillingMail.Kind.PLAN_ENDED).count() == 1


def test_a_payment_that_comes_after_the_end_revives_nothing():
    subscription = subscriptions.subscribe(make_user(), make_plan(), at=START)
    subscriptions.end(subscription, at=START + timedelta(days=1))
    subscriptions.payment_succeeded(subscription, at=START + timedelta(days=2))
    subscriptions.payment_failed(subscription, at=START + timedelta(days=2))
    assert Subscription.objects.get().status == Status.ENDED


@pytest.mark.django_db(transaction=True)
def test_plans_chosen_at_once_leave_one_subscription_without_gaps():
    user, plans = make_user(), [make_plan() for _ in range(4)]

    def choose(plan):
        try:
            for step in range(5):
                subscriptions.subscribe(user, plan, at=START + timedelta(seconds=step))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(choose, plans))
    subscription = Subscription.objects.get()
    spans = spans_of(subscription)
    assert_no_gaps(spans)
    user.refresh_from_db()
    assert user.tier == subscription.tier == spans[-1].tier
