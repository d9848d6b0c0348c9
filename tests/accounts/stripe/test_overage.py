"""A month's invoice on Stripe's next bill: once, whatever dies."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.billing import invoices, subscriptions
from accounts.exceptions import PaymentProviderUnavailable
from accounts.models import Invoice, StripeCustomer, Subscription
from accounts.stripe import overage, tasks
from accounts.stripe.ending import erase_customer, stop_collecting
from tests.accounts.stripe.conftest import event, tell

pytestmark = pytest.mark.django_db


@pytest.fixture
def subscription(stripe, alice, customer, plus):
    theirs = stripe.subscription(customer, "price_plus")
    return subscriptions.subscribe(alice, plus, provider="stripe", stripe_subscription_id=theirs["id"])


@pytest.fixture
def invoice(subscription, alice):
    start = datetime(2026, 10, 1, tzinfo=UTC)
    return Invoice.objects.create(
        number="2026-000001",
        subscription=subscription,
        user=alice,
        period_start=start,
        period_end=datetime(2026, 11, 1, tzinfo=UTC),
        currency="EUR",
        total=Decimal("12.34"),
        due_at=timezone.now() + timedelta(days=14),
    )


def items(stripe):
    return list(stripe.things["invoiceitems"].values())


def test_an_invoice_is_put_on_stripes_next_bill_once_and_paid_with_it(stripe, customer, invoice):
    for _ in range(2):
        tasks.push_overage(str(invoice.pk))
    (item,) = items(stripe)
    assert (item["amount"], item["currency"], item["customer"]) == (1234, "eur", customer)
    invoice.refresh_from_db()
    assert invoice.stripe_invoice_id == item["id"]
    bill = stripe.bill(customer)
    for number in range(2):
        assert tell(event("invoice.paid", bill, event_id=f"evt_{number}")).status_code == 200
    invoice.refresh_from_db()
    assert invoice.status == "paid"


def test_an_invoice_is_collected_in_its_own_currency(stripe, invoice, settings):
    settings.CURRENCY = "USD"
    overage.push(invoice.pk)
    assert items(stripe)[0]["currency"] == "eur"


def test_a_paid_bill_leaves_what_was_credited_and_what_others_put_on_it(stripe, customer, invoice):
    overage.push(invoice.pk)
    invoices.credit(invoice, invoice.total, reason="A mistake.", by=None)
    (item,) = items(stripe)
    stripe.make("invoiceitems", **{**item, "id": "ii_other", "metadata": {"invoice_id": "R-17"}})
    assert tell(event("invoice.paid", stripe.bill(customer))).status_code == 200
    invoice.refresh_from_db()
    assert invoice.status == "credited"


@pytest.mark.parametrize("forgets", [False, True])
def test_an_item_whose_answer_was_lost_is_not_added_again(stripe, invoice, forgets):
    stripe.faults.extend([None, "lost", 500, 500])  # it is looked for, added, and nobody hears of it
    with pytest.raises(PaymentProviderUnavailable):
        overage.push(invoice.pk)
    assert len(items(stripe)) == 1
    if forgets:  # a day later
        stripe._answered.clear()
    stripe.faults.clear()
    overage.push(invoice.pk)
    assert len(items(stripe)) == 1


def test_what_nobody_has_pushed_is_found(stripe, invoice):
    assert list(overage.pending()) == [invoice.pk]
    assert tasks.push_forgotten_overages() == 1
    tasks.push_overage(str(invoice.pk))
    assert list(overage.pending()) == []


def test_an_invoice_of_who_pays_otherwise_or_has_paid_is_not_pushed(stripe, invoice):
    Subscription.objects.update(provider="")
    overage.push(invoice.pk)
    Subscription.objects.update(provider="stripe")
    Invoice.objects.update(status="paid")
    overage.push(invoice.pk)
    assert items(stripe) == []


def test_a_plan_that_ended_here_is_cancelled_at_stripe_once(stripe, subscription):
    stop_collecting(subscription.pk)
    assert stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] == "active", "it has not ended"
    subscriptions.end(subscription)
    for _ in range(2):
        tasks.stop_collecting(str(subscription.pk))
    assert stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] == "canceled"
    del stripe.things["subscriptions"][subscription.stripe_subscription_id]
    tasks.stop_collecting(str(subscription.pk))


def test_the_nightly_comparison_finds_what_no_event_told(stripe, alice, customer, subscription):
    stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] = "canceled"
    for _ in range(2):
        assert tasks.compare_with_stripe() == 1
        tasks.sync_customer(customer)
    alice.refresh_from_db()
    assert alice.tier_id == "free"


def test_an_erased_account_has_no_customer_at_stripe(stripe, alice, customer, subscription):
    assert erase_customer(alice.pk) == 1
    assert erase_customer(alice.pk) == 0
    assert customer not in stripe.things["customers"]
    assert not StripeCustomer.objects.exists()


def test_a_customer_whom_stripe_no_longer_has_is_erased_all_the_same(stripe, alice, customer):
    del stripe.things["customers"][customer]
    assert erase_customer(alice.pk) == 1


def test_while_stripe_is_away_an_account_is_not_said_to_be_erased(stripe, alice, customer):
    stripe.faults.extend([500] * 3)
    with pytest.raises(PaymentProviderUnavailable):
        erase_customer(alice.pk)
    assert StripeCustomer.objects.exists()
