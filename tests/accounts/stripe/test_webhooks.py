"""What Stripe tells: who may tell it, how often, in which order."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import permutations

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone
from stripe import WebhookSignature

from accounts.billing import subscriptions
from accounts.models import PlanSpan, StripeCustomer, StripeEvent, Subscription, User
from accounts.stripe import tasks
from tests.accounts.stripe.conftest import WEBHOOK_SECRET, event, tell

pytestmark = pytest.mark.django_db


def plan_of(user) -> tuple[str, str]:
    """Return the user's tier, and how the subscription stands."""
    found = Subscription.objects.filter(user=user).first()
    return User.objects.get(pk=user.pk).tier_id, found.status if found else ""


def test_a_subscription_at_stripe_puts_its_user_on_the_plan(stripe, alice, customer, plus):
    subscription = stripe.subscription(customer, "price_plus")
    assert tell(event("customer.subscription.created", subscription)).status_code == 200
    assert plan_of(alice) == ("plus", "active")
    ours = Subscription.objects.get(user=alice)
    assert (ours.provider, ours.stripe_subscription_id) == ("stripe", subscription["id"])


@pytest.mark.parametrize(
    ("secret", "age", "signature"),
    [
        ("whsec_another", 0, None),
        (WEBHOOK_SECRET, 301, None),
        (WEBHOOK_SECRET, 0, ""),
        (WEBHOOK_SECRET, 0, "t=,v1="),
        (WEBHOOK_SECRET, 0, "t=1,v1=00,v0=00"),
        (WEBHOOK_SECRET, 0, "rubbish"),
    ],
)
def test_what_is_not_signed_by_stripe_just_now_is_refused(stripe, alice, customer, plus, secret, age, signature):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus"))
    answer = tell(body, secret=secret, timestamp=int(time.time()) - age, signature=signature)
    assert answer.status_code == 400
    assert plan_of(alice) == ("free", "")
    assert not StripeEvent.objects.exists()
    assert stripe.requests == []


@pytest.mark.parametrize(
    "body", ["", "{}", "[]", "null", '"x"', "{", '{"object": "event"}', '{"object": "v2.core.event"}']
)
def test_a_signed_body_that_is_no_event_is_refused(stripe, body):
    assert tell(body).status_code == 400


def test_a_body_that_is_no_text_is_refused(stripe):
    answer = Client().post("/stripe/webhook", b"\xff\xfe", content_type="application/json")
    assert answer.status_code == 400


def test_a_changed_body_is_refused(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus"))
    signature = WebhookSignature.generate_signature_header(body, WEBHOOK_SECRET)
    assert tell(body.replace("sub_", "sub_x"), signature=signature).status_code == 400


def test_a_huge_body_is_refused(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus") | {"x": "x" * 6_000_000})
    assert tell(body).status_code == 400
    assert plan_of(alice) == ("free", "")
    assert stripe.requests == []


@pytest.mark.parametrize("version", ["2019-02-19", "2099-01-01.tomorrow", None])
def test_an_event_of_another_version_of_the_api_is_understood_as_the_truth_is_asked_for(
    stripe, alice, customer, plus, version
):
    stripe.subscription(customer, "price_plus")
    told = {"object": "subscription", "customer": customer, "plan": {"id": "price_of_old"}}
    assert tell(event("customer.subscription.updated", told, api_version=version)).status_code == 200
    assert plan_of(alice) == ("plus", "active")


@pytest.mark.parametrize("told", [{}, {"customer": None}, {"customer": 17}, {"customer": {"id": "cus_1"}}])
def test_an_event_that_names_no_customer_changes_nothing(stripe, alice, told):
    assert tell(event("customer.subscription.updated", told)).status_code == 200
    assert tell(event("invoice.paid", told, event_id="evt_2")).status_code == 200
    assert stripe.requests == []


def test_an_event_for_real_money_is_refused_where_none_is_taken(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus"), livemode=True)
    assert tell(body).status_code == 400
    assert plan_of(alice) == ("free", "")


def test_an_event_of_another_kind_is_taken_and_changes_nothing(stripe, alice, customer):
    assert tell(event("customer.tax_id.created", {"object": "tax_id", "customer": customer})).status_code == 200
    assert stripe.requests == []


def test_without_keys_there_is_no_such_address(client, db):
    assert client.post("/stripe/webhook", b"{}", content_type="application/json").status_code == 404


def test_an_event_that_is_told_again_asks_and_changes_nothing(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus"))
    tell(body)
    asked = len(stripe.requests)
    assert tell(body).status_code == 200
    assert len(stripe.requests) == asked
    assert PlanSpan.objects.count() == 1


def test_events_are_remembered_for_as_long_as_they_may_come_again(db):
    now = timezone.now()
    for days in (89, 91):
        made = now - timedelta(days=days)
        StripeEvent.objects.create(event_id=f"evt_{days}", type="invoice.paid", created_at=made, received_at=made)
    for _ in range(2):
        tasks.forget_old_events()
    assert [each.event_id for each in StripeEvent.objects.all()] == ["evt_89"]


def test_where_stripe_cannot_be_asked_the_event_is_to_come_again(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription(customer, "price_plus"))
    stripe.faults.extend([500, 503, "drop"])
    assert tell(body).status_code == 503
    assert plan_of(alice) == ("free", "")
    assert not StripeEvent.objects.exists()
    assert tell(body).status_code == 200
    assert plan_of(alice) == ("plus", "active")


def test_an_unknown_customer_and_one_who_was_erased_change_nothing(stripe, alice, customer, plus):
    body = event("customer.subscription.created", stripe.subscription("cus_stranger", "price_plus"))
    assert tell(body).status_code == 200
    StripeCustomer.objects.all().delete()
    mine = event("customer.subscription.created", stripe.subscription(customer, "price_plus"), event_id="evt_2")
    assert tell(mine).status_code == 200
    assert not Subscription.objects.exists()


def test_a_price_that_no_tier_has_changes_nothing(stripe, alice, customer, plus):
    tell(event("customer.subscription.created", stripe.subscription(customer, "price_plus")))
    stripe.things["subscriptions"].clear()
    other = stripe.subscription(customer, "price_unheard_of")
    assert tell(event("customer.subscription.updated", other, event_id="evt_2")).status_code == 200
    assert plan_of(alice) == ("plus", "active")


STORIES = {
    "begun": ("active", ["checkout.session.completed", "customer.subscription.created", "invoice.paid"]),
    "failed": (
        "past_due",
        ["customer.subscription.created", "invoice.paid", "invoice.payment_failed", "customer.subscription.updated"],
    ),
    "ended": (
        "canceled",
        ["customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted"],
    ),
}
STATES = {"active": ("plus", "active"), "past_due": ("plus", "past_due"), "canceled": ("free", "")}


@pytest.mark.parametrize(("status", "kinds"), STORIES.values(), ids=STORIES)
def test_events_in_any_order_and_twice_lead_to_the_same_plan(stripe, alice, customer, plus, status, kinds):
    subscription = stripe.subscription(customer, "price_plus", status=status)
    bill = stripe.make("invoices", object="invoice", customer=customer, lines=[])
    for order in permutations(enumerate(kinds)):
        Subscription.objects.all().delete()
        StripeEvent.objects.all().delete()
        User.objects.update(tier="free")
        for number, kind in [*order, order[0]]:
            told = bill if kind.startswith("invoice") else {"id": subscription["id"], "customer": customer}
            assert tell(event(kind, told, event_id=f"evt_{number}")).status_code == 200
        assert plan_of(alice) == STATES[status], order
        assert PlanSpan.objects.count() <= 1


def test_an_older_state_never_replaces_a_newer_one(stripe, alice, customer, plus):
    stripe.subscription(customer, "price_plus")
    StripeCustomer.objects.update(synced_at=timezone.now() + timedelta(minutes=1))
    tell(event("customer.subscription.updated", {"customer": customer}))
    assert plan_of(alice) == ("free", "")


def test_a_plan_changes_ends_and_begins_anew_with_stripes(stripe, alice, customer, plus, enterprise):
    subscription = stripe.subscription(customer, "price_plus")
    seen = []
    for number, change in enumerate(
        [{}, {"price": "price_enterprise"}, {"status": "past_due"}, {"status": "active"}, {"status": "canceled"}]
    ):
        if "price" in change:
            subscription["items"]["data"][0]["price"]["id"] = change["price"]
        subscription |= {name: value for name, value in change.items() if name == "status"}
        tell(event("customer.subscription.updated", subscription, event_id=f"evt_{number}"))
        seen.append(plan_of(alice))
    assert seen == [
        ("plus", "active"),
        ("enterprise", "active"),
        ("enterprise", "past_due"),
        ("enterprise", "active"),
        ("free", "ended"),
    ]
    tell(event("customer.subscription.created", stripe.subscription(customer, "price_plus"), event_id="evt_9"))
    assert plan_of(alice) == ("plus", "active")


def test_who_has_not_paid_within_the_grace_stays_off_the_plan_until_it_is_paid(stripe, alice, customer, plus):
    subscription = stripe.subscription(customer, "price_plus")
    tell(event("customer.subscription.created", subscription))
    subscription["status"] = "past_due"
    tell(event("invoice.payment_failed", {"id": "in_1", "customer": customer}, event_id="evt_2"))
    assert subscriptions.end_graces(timezone.now() + timedelta(days=15)) == 1
    tell(event("customer.subscription.updated", subscription, event_id="evt_3"))
    assert plan_of(alice) == ("free", "ended")
    subscription["status"] = "active"
    tell(event("customer.subscription.updated", subscription, event_id="evt_4"))
    assert plan_of(alice) == ("plus", "active")


@pytest.mark.django_db(transaction=True)
def test_many_events_at_once_make_one_plan(stripe, alice, customer, plus):
    subscription = stripe.subscription(customer, "price_plus")
    bodies = [
        event("customer.subscription.created", subscription, event_id=f"evt_{number % 4}") for number in range(12)
    ]

    def told(body):
        try:
            return tell(body).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(told, bodies)) == {200}
    assert plan_of(alice) == ("plus", "active")
    assert PlanSpan.objects.count() == 1
    assert StripeEvent.objects.count() == 4


def test_no_log_line_holds_a_secret(stripe, alice, customer, plus, caplog):
    stripe.faults.extend([401, 401, 401])
    tell(event("customer.subscription.created", stripe.subscription(customer, "price_plus")))
    tell(json.dumps({"id": "x"}))
    assert "stripe_failed" in caplog.text
    assert "sk_test" not in caplog.text
    assert "whsec" not in caplog.text
