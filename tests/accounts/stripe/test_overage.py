"""A month's invoice on Stripe's next bill: once, whatever dies."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts import sanctions
from accounts.billing import invoices, subscriptions
from accounts.exceptions import PaymentProviderUnavailable
from accounts.models import Erasure, Invoice, StripeCustomer, Subscription, User
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
        stripe.forget_keys()
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
    theirs = stripe.things["subscriptions"][subscription.stripe_subscription_id]
    theirs["status"] = "past_due"
    stop_collecting(subscription.pk)
    assert theirs["status"] == "past_due", "it has not ended"
    subscriptions.end(subscription)
    for _ in range(2):
        tasks.stop_collecting(str(subscription.pk))
    assert theirs["status"] == "canceled"
    del stripe.things["subscriptions"][subscription.stripe_subscription_id]
    tasks.stop_collecting(str(subscription.pk))


def test_a_plan_that_is_paid_just_when_its_grace_ends_goes_on(stripe, alice, subscription):
    subscriptions.end(subscription)
    tasks.stop_collecting(str(subscription.pk))
    alice.refresh_from_db()
    assert alice.tier_id == "plus"
    assert stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] == "active"


def test_what_the_plan_of_an_account_that_is_erased_pays_at_stripe_is_cancelled_and_never_comes_back(
    stripe, alice, customer, subscription
):
    Erasure.objects.create(user_id=alice.pk, digest=b"1" * 32)
    subscriptions.end(subscription)
    tell(event("customer.subscription.updated", stripe.things["subscriptions"][subscription.stripe_subscription_id]))
    tasks.sync_customer(customer)
    assert Subscription.objects.get().status == "ended"
    tasks.stop_collecting(str(subscription.pk))
    assert stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] == "canceled"


def test_the_plan_of_a_suspended_account_follows_what_stripe_says(stripe, alice, customer, subscription):
    sanctions.suspend(alice, reason="Spam", by=None)
    theirs = stripe.things["subscriptions"][subscription.stripe_subscription_id]
    theirs["status"] = "past_due"
    tell(event("invoice.payment_failed", {"id": "in_1", "customer": customer}))
    assert Subscription.objects.get().status == "past_due"
    theirs["status"] = "active"
    tell(event("invoice.paid", stripe.bill(customer), event_id="evt_2"))
    assert Subscription.objects.get().status == "active"
    assert not User.objects.get(pk=alice.pk).is_active


@pytest.mark.parametrize(("credited", "cents"), [("2.34", [1000]), ("12.34", [])])
def test_what_is_credited_before_the_bill_is_not_collected(stripe, customer, invoice, credited, cents):
    tasks.push_overage(str(invoice.pk))
    invoices.credit(invoice, Decimal(credited), reason="An outage", by=None)
    for _ in range(2):
        tasks.follow_overage(str(invoice.pk))
    assert [item["amount"] for item in items(stripe)] == cents
    tasks.push_overage(str(invoice.pk))
    assert [item["amount"] for item in items(stripe)] == cents


def test_what_was_credited_before_it_was_pushed_is_not_collected(stripe, invoice):
    invoices.credit(invoice, Decimal("2.34"), reason="An outage", by=None)
    tasks.push_overage(str(invoice.pk))
    assert [item["amount"] for item in items(stripe)] == [1000]


def test_what_was_paid_otherwise_is_taken_off_a_draft_and_stays_on_a_bill_that_was_sent(stripe, customer, invoice):
    tasks.push_overage(str(invoice.pk))
    bill = stripe.bill(customer, status="open")
    invoices.mark_paid(invoice, at=timezone.now())
    tasks.follow_overage(str(invoice.pk))
    assert len(items(stripe)) == 1
    bill["status"] = "draft"
    for _ in range(2):
        tasks.follow_overage(str(invoice.pk))
    assert items(stripe) == []


def test_what_was_to_be_collected_for_a_plan_that_ended_is_taken_back_and_collected_if_it_begins_again(
    stripe, alice, plus, customer, subscription, invoice
):
    tasks.push_overage(str(invoice.pk))
    stripe.things["subscriptions"][subscription.stripe_subscription_id]["status"] = "canceled"
    subscriptions.end(subscription)
    for _ in range(2):
        tasks.stop_collecting(str(subscription.pk))
    assert items(stripe) == []
    again = stripe.subscription(customer, "price_plus")
    subscriptions.subscribe(alice, plus, provider="stripe", stripe_subscription_id=again["id"])
    stripe.forget_keys()
    assert list(overage.pending()) == [invoice.pk]
    tasks.push_overage(str(invoice.pk))
    assert len(items(stripe)) == 1


def test_a_change_of_an_invoice_is_told_after_its_commit_and_once(invoice, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as told:
        invoices.credit(invoice, Decimal("1.00"), reason="An outage", by=None)
        invoices.mark_paid(invoice, at=timezone.now())
        invoices.mark_paid(invoice, at=timezone.now())
    assert len(told) == 2


def test_a_paid_bill_of_which_no_event_came_is_found_at_night(stripe, customer, invoice):
    tasks.push_overage(str(invoice.pk))
    stripe.bill(customer)
    assert list(overage.being_collected()) == [invoice.pk]
    for _ in range(2):
        tasks.follow_overage(str(invoice.pk))
    invoice.refresh_from_db()
    assert invoice.status == "paid"
    assert list(overage.being_collected()) == []


def test_what_fails_at_stripe_for_a_day_is_collected_once_after_it(stripe, invoice):
    stripe.faults.extend([None, "failed"])  # looked for, begun, failed: the key stands for that failure
    for _ in range(3):
        with pytest.raises(PaymentProviderUnavailable):
            overage.push(invoice.pk)
        stripe.things["invoiceitems"].clear()
    stripe.forget_keys()
    overage.push(invoice.pk)
    assert len(items(stripe)) == 1


def test_what_failed_at_stripe_after_it_was_done_is_not_done_twice(stripe, invoice):
    stripe.faults.extend([None, "failed"])
    with pytest.raises(PaymentProviderUnavailable):
        overage.push(invoice.pk)
    overage.push(invoice.pk)
    assert len(items(stripe)) == 1


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


def test_a_customer_of_whom_nobody_heard_is_erased_too(stripe, alice):
    made = stripe.make("customers", object="customer", email=alice.email, metadata={"user_id": str(alice.pk)})
    other = stripe.make("customers", object="customer", email=alice.email, metadata={"user_id": "another"})
    assert erase_customer(alice.pk) == 1
    assert made["id"] not in stripe.things["customers"]
    assert other["id"] in stripe.things["customers"]


def test_who_was_deleted_at_stripe_is_on_no_plan(stripe, alice, customer, subscription):
    stripe.delete_customer(customer)
    tasks.sync_customer(customer)
    alice.refresh_from_db()
    assert alice.tier_id == "free"


def test_the_key_of_another_account_at_stripe_ends_nobodys_plan(stripe, alice, customer, subscription):
    del stripe.things["customers"][customer]
    tasks.sync_customer(customer)
    alice.refresh_from_db()
    assert alice.tier_id == "plus"


def test_a_customer_whom_stripe_no_longer_has_is_erased_all_the_same(stripe, alice, customer):
    del stripe.things["customers"][customer]
    assert erase_customer(alice.pk) == 1


def test_while_stripe_is_away_an_account_is_not_said_to_be_erased(stripe, alice, customer):
    stripe.faults.extend([500] * 3)
    with pytest.raises(PaymentProviderUnavailable):
        erase_customer(alice.pk)
    assert StripeCustomer.objects.exists()
