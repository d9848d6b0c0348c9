"""The page of plan and invoices, the papers, and the same by the API."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from io import BytesIO

import pytest
import time_machine
from django.test import Client
from django.utils.html import strip_tags
from pypdf import PdfReader

from accounts.billing import invoices, plans, subscriptions
from accounts.billing.closing import close_period
from accounts.billing.money import shown as money
from accounts.billing.papers import invoice_paper
from accounts.exceptions import InvalidRequest
from accounts.models import Subscription, User
from foundation.ids import new_id
from tests.accounts.billing.making import ISSUED, at, make_invoice, make_plan, make_usage
from tests.accounts.factories import bearer, make_key, make_user, signed_in_as

pytestmark = pytest.mark.django_db

PAGE = "/account/billing"


def text_of(client, path=PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_person_takes_a_plan_changes_it_and_ends_it():
    user = make_user()
    make_plan("10.00", name="basic")
    make_plan("30.00", name="pro", included="5.00")
    client = signed_in_as(user)
    assert "EUR 10.00 a month" in text_of(client)
    for name in ("basic", "pro", "pro"):
        answer = client.post("/account/billing/plan", {"tier": name}, follow=True)
        assert f"You are on the plan {name} from now on." in answer.content.decode()
    user.refresh_from_db()
    assert user.tier_id == "pro"
    assert "EUR 5.00 of usage included" in text_of(client)
    answer = client.post("/account/billing/end", follow=True)
    assert "Your plan has ended." in answer.content.decode()
    user.refresh_from_db()
    assert user.tier_id == "free"


def test_the_months_invoice_as_it_stands_is_the_one_that_comes():
    user, plan = make_user(), make_plan("30.00", included="1.00")
    subscription = subscriptions.subscribe(user, plan, at=at(2026, 11, 1))
    make_usage(user, "3.00", at(2026, 11, 2))
    with time_machine.travel(at(2026, 11, 3), tick=False):
        shown = text_of(signed_in_as(user))
    assert "The invoice for November 2026, as it stands" in shown
    assert "EUR 32.00" in shown
    with time_machine.travel(ISSUED, tick=False):
        assert close_period(subscription, at(2026, 11, 1)).total == Decimal("32.00")


def test_what_is_still_to_be_paid_after_the_end_of_a_plan_is_told():
    user, plan = make_user(), make_plan("30.00")
    subscription = subscriptions.subscribe(user, plan, at=at(2026, 11, 1))
    subscriptions.end(subscription, at=at(2026, 11, 16))
    with time_machine.travel(at(2026, 11, 20), tick=False):
        shown = text_of(signed_in_as(user))
    assert "You are on <strong>free</strong>" in shown
    assert "EUR 15.00" in shown
    assert "Your plan has ended: this is for the time until then." in shown
    with time_machine.travel(ISSUED, tick=False):
        assert "as it stands" not in text_of(signed_in_as(user))


@pytest.mark.parametrize(
    ("tier", "status"), [("enterprise", 404), ("free", 404), ("nothing", 404), ("a b", 302), ("", 302)]
)
def test_only_what_is_offered_can_be_chosen(tier, status):
    user = make_user()
    answer = signed_in_as(user).post("/account/billing/plan", {"tier": tier})
    assert answer.status_code == status
    user.refresh_from_db()
    assert user.tier_id == "free"
    assert not Subscription.objects.exists()


def test_who_owes_pays_before_another_plan_is_taken():
    user = make_user()
    invoice = make_invoice(user)
    plan = make_plan("30.00")
    late = invoice.due_at + timedelta(days=15)
    with time_machine.travel(late, tick=False):
        subscriptions.end(Subscription.objects.get())
        client = signed_in_as(user)
        answer = client.post("/account/billing/plan", {"tier": plan.pk}, follow=True)
        assert "An invoice is overdue." in answer.content.decode()
        invoices.mark_paid(invoice, at=late)
        client.post("/account/billing/plan", {"tier": plan.pk})
    user.refresh_from_db()
    assert user.tier == plan


def test_an_account_that_is_being_closed_takes_no_plan():
    user, plan = make_user(), make_plan()
    User.objects.update(is_active=False)  # since the request began
    with pytest.raises(InvalidRequest, match="closed"):
        plans.choose_plan(user, plan, at=at(2026, 11, 1))
    assert not Subscription.objects.exists()


def test_a_plan_that_stripe_collects_is_not_changed_beside_it():
    user, other = make_user(), make_plan()
    plan = make_plan()
    subscriptions.subscribe(user, plan, provider="stripe")
    client = signed_in_as(user)
    client.post("/account/billing/plan", {"tier": other.pk})
    client.post("/account/billing/end")
    user.refresh_from_db()
    assert user.tier == plan


def test_an_invoice_that_stripe_collects_asks_for_no_other_payment():
    user = make_user()
    invoice = make_invoice(user)
    due = "15 December 2026"
    assert f"due {due}" in text_of(signed_in_as(user))
    Subscription.objects.update(provider="stripe")
    listed, shown = text_of(signed_in_as(user)), text_of(signed_in_as(user), f"/account/invoices/{invoice.pk}")
    assert "with your next card payment" in listed
    assert f"due {due}" not in listed
    assert "it is collected with your next card payment" in shown


def test_a_payment_that_is_due_is_told():
    user = make_user()
    make_invoice(user)
    subscriptions.payment_failed(Subscription.objects.get(), at=at(2026, 12, 15))
    assert "after 29 December 2026" in text_of(signed_in_as(user))


def test_invoices_and_credit_notes_are_shown_as_pages_and_pdf(settings):
    settings.INVOICE_ISSUER = "Example Ltd\n<b>1 High Street</b>"
    user = make_user(name="<i>Alice</i>")
    invoice = make_invoice(user, "30.00")
    with time_machine.travel(ISSUED, tick=False):
        note = invoices.credit(invoice, Decimal("10.00"), reason="An outage", by=None)
    client = signed_in_as(user)
    listed = text_of(client)
    assert invoice.number in listed
    assert note.number in listed
    shown = text_of(client, f"/account/invoices/{invoice.pk}")
    for part in ("Example Ltd", "&lt;b&gt;1 High Street", "&lt;i&gt;Alice", "15 December 2026", "Open", "EUR 20.00"):
        assert part in shown
    for path in (f"/account/invoices/{invoice.pk}.pdf", f"/account/credit-notes/{note.pk}.pdf"):
        answer = client.get(path)
        assert answer["Content-Type"] == "application/pdf"
        assert answer.content.startswith(b"%PDF-")


@pytest.mark.parametrize("name", ["Alice", "王小明", "Лев Толстой", "Jane O’Neill-García"])
def test_page_and_pdf_say_the_same(settings, name):
    settings.INVOICE_ISSUER = "Example Ltd\n1 High Street"
    user, small, big = make_user(name=name), make_plan("10.00"), make_plan("1234.50", included="1.00")
    subscription = subscriptions.subscribe(user, small, at=at(2026, 11, 1))
    subscriptions.change_plan(subscription, big, at=at(2026, 11, 12))
    make_usage(user, "3.456", at(2026, 11, 20))
    with time_machine.travel(ISSUED, tick=False):
        invoice = close_period(subscription, at(2026, 11, 1))
    client = signed_in_as(user)
    page = strip_tags(text_of(client, f"/account/invoices/{invoice.pk}"))
    pdf = PdfReader(BytesIO(client.get(f"/account/invoices/{invoice.pk}.pdf").content)).pages[0].extract_text()
    shown, printed = (re.sub(r"\s", "", unescape(each).replace("\0", "")) for each in (page, pdf))
    paper = invoice_paper(invoice)
    said = [paper.title, *paper.issuer, *paper.customer, *(value for _, value in paper.facts)]
    said += [part for line in (*paper.lines, paper.total) for part in (line.description, money(line.amount, "EUR"))]
    assert len(paper.lines) == 3
    for text in said:
        assert re.sub(r"\s", "", text) in shown
        assert re.sub(r"\s", "", text) in printed
    assert sum(line.amount for line in paper.lines) == paper.total.amount


def test_an_invoices_pdf_stays_the_same_when_it_is_paid():
    user = make_user()
    invoice, client = make_invoice(user), signed_in_as(user)
    before = client.get(f"/account/invoices/{invoice.pk}.pdf").content
    invoices.mark_paid(invoice, at=ISSUED)
    assert client.get(f"/account/invoices/{invoice.pk}.pdf").content == before
    assert "Paid on 1 December 2026" in text_of(client, f"/account/invoices/{invoice.pk}")


def test_a_strangers_invoices_are_not_there():
    invoice = make_invoice(make_user())
    note = invoices.credit(invoice, Decimal("10.00"), reason="An outage", by=None)
    stranger = make_user()
    client = signed_in_as(stranger)
    for path in (
        f"/account/invoices/{invoice.pk}",
        f"/account/invoices/{invoice.pk}.pdf",
        f"/account/credit-notes/{note.pk}.pdf",
        f"/account/invoices/{new_id()}",
    ):
        assert client.get(path).status_code == 404
        assert Client().get(path).status_code == 302
    assert invoice.number not in text_of(client)
    headers = bearer(make_key(stranger))
    for path in ("", "/pdf"):
        assert Client().get(f"/v1/invoices/{invoice.pk}{path}", headers=headers).status_code == 404
    assert Client().get("/v1/invoices", headers=headers).json() == {"data": [], "next_cursor": None}


def test_the_api_lists_invoices_with_their_lines_and_gives_the_pdf():
    user = make_user()
    invoice = make_invoice(user, "30.00")
    headers = bearer(make_key(user))
    (listed,) = Client().get("/v1/invoices", headers=headers).json()["data"]
    assert listed == Client().get(f"/v1/invoices/{invoice.pk}", headers=headers).json()
    assert (listed["number"], listed["total"], listed["currency"]) == ("2026-000001", "30.00", "EUR")
    assert [line["amount"] for line in listed["lines"]] == ["30.00"]
    answer = Client().get(f"/v1/invoices/{invoice.pk}/pdf", headers=headers)
    assert answer["Content-Type"] == "application/pdf"


def test_a_key_without_the_scope_sees_no_invoices():
    headers = bearer(make_key(make_user(), ["chat", "read"]))
    assert Client().get("/v1/invoices", headers=headers).status_code == 403
