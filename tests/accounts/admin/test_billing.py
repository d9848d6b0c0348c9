"""Invoices and tiers of accounts in the admin: paid, credited, changed, each with its row in the log."""

from decimal import Decimal

import pytest

from accounts.billing import subscriptions
from accounts.models import AuditLog, CreditNote, Invoice, PlanSpan, Subscription, Tier
from tests.accounts.admin.staff import WHY, act, address_of, chief_client, logged
from tests.accounts.billing.making import make_invoice
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def chief():
    return chief_client()


@pytest.fixture
def invoice():
    return make_invoice()


def test_an_invoice_is_marked_as_paid_once(chief, invoice):
    act(chief, "mark_as_paid", invoice)
    invoice.refresh_from_db()
    assert invoice.status == "paid"
    paid_at = invoice.paid_at
    act(chief, "mark_as_paid", invoice)
    invoice.refresh_from_db()
    assert invoice.paid_at == paid_at
    row = logged("marked_paid", invoice)
    assert (row.actor, row.reason, row.changes) == (
        chief.staff,
        WHY,
        {"status": {"before": "open", "after": "paid"}},
    )


def test_where_one_of_several_cannot_be_paid_none_is(chief, invoice):
    other = make_invoice(make_user())
    act(chief, "credit_it", other, amount="30.00", told="An outage.")
    page = act(chief, "mark_as_paid", invoice, other)
    assert "This invoice was credited in full: there is nothing to pay." in page.text
    invoice.refresh_from_db()
    assert invoice.status == "open"
    assert not AuditLog.objects.filter(action="marked_paid").exists()


def test_a_credit_has_its_note_its_reason_and_its_row(chief, invoice):
    act(chief, "credit_it", invoice, amount="12.50", told="An outage.")
    note = CreditNote.objects.get()
    assert (note.amount, note.reason, note.created_by) == (Decimal("12.50"), "An outage.", chief.staff)
    row = logged("credited", invoice)
    assert row.reason == WHY
    assert row.changes["credited"] == {"before": None, "after": "12.50"}
    assert row.changes["note"]["after"] == note.number


@pytest.mark.parametrize("amount", ["0", "0.00", "-1", "0.001", "NaN", "Infinity", "", "30.01", "1e9"])
def test_a_credit_of_nothing_or_of_too_much_is_refused(chief, invoice, amount):
    page = act(chief, "credit_it", invoice, amount=amount, told="An outage.")
    assert "errorlist" in page.text or "of this invoice is left" in page.text
    assert not CreditNote.objects.exists()
    assert not AuditLog.objects.exists()


def test_one_invoice_is_credited_at_a_time(chief, invoice):
    page = act(chief, "credit_it", invoice, make_invoice(make_user()), amount="1.00", told="An outage.")
    assert "Credit one invoice at a time." in page.text
    assert not CreditNote.objects.exists()


def test_an_invoice_is_neither_made_nor_changed_nor_deleted(chief, invoice):
    sent = {"total": "1.00", "post": "yes", "why": WHY}
    for address in (address_of(Invoice, "add"), address_of(invoice, "change"), address_of(invoice, "delete")):
        assert chief.post(address, sent).status_code == 403
    invoice.refresh_from_db()
    assert invoice.total == Decimal("30.00")


def test_the_list_tells_what_is_owed_for_which_month(chief, invoice):
    page = chief.get(address_of(Invoice)).text
    for shown in (invoice.number, "November 2026", "EUR 30.00", "Open"):
        assert shown in page


def test_an_account_without_a_plan_is_put_on_another_tier(chief):
    user = make_user()
    act(chief, "change_tier", user, tier="plus")
    user.refresh_from_db()
    assert user.tier_id == "plus"
    assert logged("changed_tier", user).changes == {"tier": {"before": "free", "after": "plus"}}
    assert not Subscription.objects.exists()


def test_the_plan_of_an_account_follows_so_that_the_bill_does(chief):
    user = make_user()
    subscriptions.subscribe(user, Tier.objects.get(pk="plus"))
    act(chief, "change_tier", user, tier="enterprise")
    user.refresh_from_db()
    assert user.tier_id == user.subscription.tier_id == "enterprise"
    assert PlanSpan.objects.get(ends_at=None).tier_id == "enterprise"


def test_a_plan_at_stripe_is_changed_there_and_of_several_accounts_none_is(chief):
    user, other = make_user("b@example.com"), make_user("a@example.com")
    subscriptions.subscribe(user, Tier.objects.get(pk="plus"), provider="stripe", stripe_subscription_id="sub_1")
    page = act(chief, "change_tier", user, other, tier="enterprise")
    assert "The plan of b@example.com is at Stripe" in page.text
    for each, tier in ((user, "plus"), (other, "free")):
        each.refresh_from_db()
        assert each.tier_id == tier
    assert not AuditLog.objects.exists()


@pytest.mark.parametrize("tier", ["", "royal"])
def test_there_is_no_other_tier_to_choose(chief, tier):
    user = make_user()
    assert "errorlist" in act(chief, "change_tier", user, tier=tier).text
    user.refresh_from_db()
    assert user.tier_id == "free"
