"""Invoices: paid, credited, overdue."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.db import IntegrityError, connection, transaction
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.billing import invoices, plans, subscriptions
from accounts.exceptions import InvalidRequest
from accounts.models import CreditNote, Invoice, Subscription, User
from conversations.models import Conversation
from tests.accounts.billing.making import ISSUED, at, close_due, make_invoice
from tests.accounts.factories import bearer, make_key, make_user

pytestmark = pytest.mark.django_db

Status = Invoice.Status
DUE = ISSUED + timedelta(days=14)


def test_an_invoice_is_paid_once_and_keeps_its_day():
    invoice = make_invoice()
    for days in (3, 5):
        invoices.mark_paid(invoice, at=ISSUED + timedelta(days=days))
    invoice.refresh_from_db()
    assert (invoice.status, invoice.paid_at) == (Status.PAID, ISSUED + timedelta(days=3))


def test_an_invoice_names_its_customer_and_issuer_as_of_then(settings):
    settings.INVOICE_ISSUER = "Example Ltd\n1 High Street"
    invoice = make_invoice(name="Alice")
    invoice.user.name = "Bob"
    invoice.user.save()
    settings.INVOICE_ISSUER = "Other Ltd"
    invoice.refresh_from_db()
    assert (invoice.customer_name, invoice.issuer) == ("Alice", "Example Ltd\n1 High Street")


def test_parts_are_credited_until_nothing_is_left():
    invoice, staff = make_invoice(total="30.00"), make_user(is_staff=True)
    with time_machine.travel(at(2027, 1, 5), tick=False):
        first = invoices.credit(invoice, Decimal("10.00"), reason=" An outage ", by=staff)
        assert (invoice.status, invoices.left_of(invoice)) == (Status.OPEN, Decimal("20.00"))
        second = invoices.credit(invoice, Decimal("20.00"), reason="The rest", by=None)
    assert (first.number, second.number) == ("CN-2027-000001", "CN-2027-000002")
    assert (first.reason, first.created_by) == ("An outage", staff)
    assert Invoice.objects.get().status == Status.CREDITED
    with pytest.raises(InvalidRequest):
        invoices.credit(invoice, Decimal("0.01"), reason="More", by=staff)
    with pytest.raises(InvalidRequest):
        invoices.mark_paid(invoice, at=ISSUED)


def test_a_paid_invoice_stays_paid_after_a_part_and_is_credited_after_the_whole():
    invoice = make_invoice(total="30.00")
    invoices.mark_paid(invoice, at=ISSUED)
    invoices.credit(invoice, Decimal("29.99"), reason="An outage", by=None)
    assert invoice.status == Status.PAID
    invoices.credit(invoice, Decimal("0.01"), reason="The rest", by=None)
    assert invoice.status == Status.CREDITED


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "30.01", "NaN", "Infinity"])
def test_an_amount_that_cannot_be_credited_is_refused_and_takes_no_number(amount):
    invoice = make_invoice(total="30.00")
    with pytest.raises(InvalidRequest):
        invoices.credit(invoice, Decimal(amount), reason="An outage", by=None)
    assert not CreditNote.objects.exists()
    assert invoices.credit(invoice, Decimal(1), reason="An outage", by=None).number.endswith("-000001")


def test_nothing_is_credited_without_a_reason():
    with pytest.raises(InvalidRequest):
        invoices.credit(make_invoice(), Decimal(1), reason="  ", by=None)


@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.decimals(min_value="-1", max_value="20", places=2), max_size=8))
def test_never_more_than_the_total_is_credited(amounts):
    invoice = make_invoice(total="30.00")
    for amount in amounts:
        try:
            invoices.credit(invoice, amount, reason="An outage", by=None)
        except InvalidRequest:
            continue
    left = invoices.left_of(invoice)
    assert 0 <= left <= Decimal("30.00")
    assert (invoice.status == Status.CREDITED) == (left == 0)


def test_who_does_not_pay_goes_on_for_free_and_is_back_on_the_plan_once_it_is_paid_with_all_that_was_there():
    user = make_user()
    invoice = make_invoice(user)
    plan, key, conversation = Subscription.objects.get().tier, make_key(user), Conversation.objects.create(user=user)
    invoices.start_graces(DUE)
    assert User.objects.get(pk=user.pk).tier == plan, "it goes on in the grace"
    ended = DUE + timedelta(days=14)
    subscriptions.end_graces(ended)
    assert User.objects.get(pk=user.pk).tier_id == "free"
    with pytest.raises(InvalidRequest, match="Pay it first"):
        plans.choose_plan(user, plan, at=ended)
    invoices.mark_paid(invoice, at=ended + timedelta(days=1))
    plans.choose_plan(user, plan, at=ended + timedelta(days=2))
    assert User.objects.get(pk=user.pk).tier == plan
    assert Client().get("/v1/invoices", headers=bearer(key)).status_code == 200
    assert Conversation.objects.get() == conversation
    with time_machine.travel(at(2027, 2, 1, 2), tick=False):
        close_due(at(2027, 2, 1, 2))
    # Of December two days were free.
    assert [each.total for each in Invoice.objects.order_by("period_start")] == [30, Decimal("28.06"), 30]


CHANGES = [
    ("invoice", {"total": Decimal("1.00")}),
    ("invoice", {"number": "2026-999999"}),
    ("invoice", {"issuer": "Somebody else"}),
    ("invoice", {"due_at": DUE + timedelta(days=1)}),
    ("invoice", {"currency": "USD"}),
    ("line", {"amount": Decimal("1.00")}),
    ("line", {"description": "Something else"}),
    ("note", {"amount": Decimal("1.00")}),
    ("note", {"number": "CN-2026-999999"}),
]


@pytest.mark.parametrize(("paper", "change"), [*CHANGES, ("invoice", None), ("line", None), ("note", None)])
def test_what_was_issued_cannot_be_changed_or_deleted_whoever_tries(paper, change):
    invoice = make_invoice(total="30.00")
    note = invoices.credit(invoice, Decimal("2.00"), reason="An outage", by=None)
    rows = {"invoice": Invoice.objects, "line": invoice.lines, "note": CreditNote.objects}[paper].all()
    with pytest.raises(IntegrityError, match="What was issued is not changed"), transaction.atomic():
        rows.update(**change) if change else rows._raw_delete("default")
    assert (Invoice.objects.get().total, CreditNote.objects.get().number) == (Decimal("30.00"), note.number)


@pytest.mark.django_db(transaction=True)
def test_credits_given_at_once_are_never_more_than_the_total():
    invoice = make_invoice(total="30.00")

    def give(_):
        try:
            return invoices.credit(Invoice.objects.get(), Decimal("20.00"), reason="An outage", by=None)
        except InvalidRequest:
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        notes = [note for note in pool.map(give, range(3)) if note]
    assert len(notes) == 1
    assert invoices.left_of(invoice) == Decimal("10.00")


def test_an_overdue_invoice_starts_the_grace_and_its_payment_ends_it():
    invoice = make_invoice()
    assert invoices.start_graces(DUE - timedelta(seconds=1)) == 0
    assert invoices.start_graces(DUE) == 1
    assert invoices.start_graces(DUE + timedelta(hours=1)) == 0
    subscription = Subscription.objects.get()
    assert (subscription.status, subscription.grace_until) == ("past_due", DUE + timedelta(days=14))
    invoices.mark_paid(invoice, at=DUE + timedelta(days=2))
    assert Subscription.objects.get().status == "active"
    assert subscriptions.end_graces(DUE + timedelta(days=30)) == 0


def test_a_grace_that_began_late_is_no_shorter():
    make_invoice()
    late = DUE + timedelta(days=40)
    invoices.start_graces(late)
    assert subscriptions.end_graces(late) == 0
    assert Subscription.objects.get().grace_until == late + timedelta(days=14)


def test_an_invoice_credited_in_full_is_no_longer_waited_for():
    invoice = make_invoice(total="30.00")
    invoices.start_graces(DUE)
    with time_machine.travel(DUE + timedelta(days=1), tick=False):
        invoices.credit(invoice, Decimal("29.00"), reason="An outage", by=None)
        assert Subscription.objects.get().status == "past_due"
        invoices.credit(invoice, Decimal("1.00"), reason="An outage", by=None)
    assert Subscription.objects.get().status == "active"


def test_an_invoice_of_a_plan_that_stripe_collects_starts_no_grace_here():
    invoice = make_invoice()
    Subscription.objects.update(provider="stripe")
    assert invoices.start_graces(DUE) == 0
    Subscription.objects.update(status="past_due", grace_until=DUE + timedelta(days=14))
    invoices.mark_paid(invoice, at=DUE)
    assert Subscription.objects.get().status == "past_due"
