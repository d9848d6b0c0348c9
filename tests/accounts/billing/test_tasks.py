"""The tasks about money: each run twice, and three at once."""

import smtplib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier

import pytest
import time_machine
from django.core import mail
from django.db import connection

from accounts import tasks
from accounts.billing import closing, invoices, mails, subscriptions
from accounts.models import BillingMail, Invoice, Subscription
from tests.accounts.billing.making import ISSUED, at, make_invoice, make_plan
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def three_at_once(task):
    together = Barrier(3)

    def run(_):
        try:
            together.wait(10)
            task()
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))


def twice(task):
    task()
    task()


ways = pytest.mark.parametrize("run", [twice, three_at_once])


@ways
@pytest.mark.django_db(transaction=True)
def test_months_are_closed_once(run):
    user = make_user()
    subscriptions.subscribe(user, make_plan("30.00"), at=at(2026, 11, 1))
    with time_machine.travel(ISSUED, tick=False):
        run(tasks.close_months)
        (plan,) = closing.due(ISSUED)
        run(lambda: tasks.close_months_of(str(plan)))
        assert closing.due(ISSUED) == []
    assert Invoice.objects.get().total == Decimal("30.00")


def test_a_plan_that_went_with_its_account_is_passed_over():
    plan = subscriptions.subscribe(make_user(), make_plan("30.00"), at=at(2026, 11, 1))
    due = closing.due(ISSUED)
    plan.delete()
    with time_machine.travel(ISSUED, tick=False):
        assert [tasks.close_months_of(str(each)) for each in due] == [None]
    assert not Invoice.objects.exists()


@ways
@pytest.mark.django_db(transaction=True)
def test_an_unpaid_plan_is_warned_once_and_ended_once(run):
    invoice = make_invoice()
    with time_machine.travel(invoice.due_at, tick=False):
        run(tasks.end_unpaid_plans)
    subscription = Subscription.objects.get()
    assert (subscription.status, subscription.grace_until) == ("past_due", invoice.due_at + timedelta(days=14))
    with time_machine.travel(subscription.grace_until, tick=False):
        run(tasks.end_unpaid_plans)
    subscription.refresh_from_db()
    assert (subscription.status, subscription.user.tier_id) == ("ended", "free")
    kinds = list(BillingMail.objects.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["invoice_issued", "payment_failed", "plan_ended"]


def test_the_mail_of_an_invoice_that_stripe_collects_asks_for_no_other_payment():
    make_invoice()
    Subscription.objects.update(provider="stripe")
    with time_machine.travel(ISSUED, tick=False):
        tasks.send_billing_mails()
    assert "is collected with your next card payment." in mail.outbox[0].body
    assert "due" not in mail.outbox[0].body


@ways
@pytest.mark.django_db(transaction=True)
def test_each_mail_is_sent_once_with_the_sentence_it_owes(run, settings):
    settings.SITE_URL = "https://chat.example.org"
    invoice = make_invoice(make_user("alice@example.com"))
    with time_machine.travel(ISSUED, tick=False):
        invoices.start_graces(invoice.due_at)
        invoices.credit(invoice, Decimal("1.00"), reason="An outage", by=None)
        subscriptions.end_graces(invoice.due_at + timedelta(days=14))
        run(tasks.send_billing_mails)
    sent = {message.subject: message.body for message in mail.outbox}
    assert len(mail.outbox) == len(sent) == 4
    assert {recipient for message in mail.outbox for recipient in message.to} == {"alice@example.com"}
    issued = sent["Your invoice 2026-000001"]
    assert f"https://chat.example.org/account/invoices/{invoice.pk}" in issued
    assert "EUR 30.00" in issued
    assert "15 December 2026" in issued
    assert "pay it by 29 December 2026" in sent["A payment for your plan is due"]
    assert "CN-2026-000001 over EUR 1.00" in sent["A credit note for your invoice 2026-000001"]
    assert "your conversations are all there" in sent["Your plan has ended"]
    assert not BillingMail.objects.filter(sent_at=None).exists()


def test_a_mail_that_cannot_be_sent_holds_up_no_other_and_is_tried_again(monkeypatch):
    make_invoice(make_user("first@example.com"))
    make_invoice(make_user("second@example.com"))

    def refuse_first(*_args, **_kwargs):
        monkeypatch.undo()
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr("django.core.mail.message.EmailMessage.send", refuse_first)
    with time_machine.travel(ISSUED, tick=False):
        assert mails.send_owed() == 1
        assert [message.to for message in mail.outbox] == [["second@example.com"]]
        assert mails.send_owed() == 1
        assert mails.send_owed() == 0


def test_a_mail_that_no_server_takes_is_given_up_after_days():
    make_invoice()
    with time_machine.travel(ISSUED + timedelta(days=3, seconds=1), tick=False):
        assert mails.send_owed() == 0
    with time_machine.travel(ISSUED + timedelta(days=3) - timedelta(seconds=1), tick=False):
        assert mails.send_owed() == 1


def test_nobody_is_written_to_whose_account_is_gone():
    user = make_user()
    make_invoice(user)
    user.delete()
    with time_machine.travel(ISSUED, tick=False):
        mails.send_owed()
    assert mail.outbox == []
    assert not BillingMail.objects.filter(sent_at=None).exists()
