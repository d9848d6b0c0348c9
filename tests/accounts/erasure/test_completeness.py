"""Of an erased account nothing is left in any table of the database, and of nobody else's anything is gone."""

import pytest
from django.test import Client

from accounts import audit
from accounts.erasure.closing import request_erasure
from accounts.erasure.work import ACCOUNT
from accounts.models import AuditLog, CreditNote, Erasure, Invoice, Subscription, User
from tests.accounts.erasure.everything import fill, models_of_accounts, rows_with
from tests.accounts.erasure.steps import erase_from_every_store, erase_wholly
from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db(transaction=True)

WORD, NEIGHBOUR = "canarybird", "sparrowhawk"


def test_no_row_of_the_whole_database_names_an_erased_account_or_holds_a_word_of_it():
    user, _ = fill(WORD)
    assert len(rows_with(WORD)) > 25
    erasure = erase_wholly(request_erasure(user.pk).pk)
    assert rows_with(WORD) == {}
    assert rows_with(str(user.pk)) == {}
    assert erasure.completed_at
    assert erasure.user_id is None


def test_every_table_that_refers_to_an_account_has_a_store():
    user, made = fill(WORD)
    erasure_id = request_erasure(user.pk).pk
    erase_from_every_store(erasure_id)
    left = {row._meta.label for row in made.values() if _is_there(row)}
    # What an invoice is for is kept with it; it holds numbers and times only.
    in_invoices = {"accounts.InvoiceLine", "accounts.ClosedPeriod", "accounts.PlanSpan"}
    assert left == {model._meta.label for model in (User, AuditLog, Invoice, CreditNote, Subscription)} | in_invoices


def _is_there(row):
    return type(row)._default_manager.filter(pk=row.pk).exists()


def test_another_account_is_untouched_to_the_row():
    user, _ = fill(WORD)
    neighbour, _ = fill(NEIGHBOUR)
    before = {**rows_with(NEIGHBOUR), "by id": rows_with(str(neighbour.pk))}
    erase_wholly(request_erasure(user.pk).pk)
    assert {**rows_with(NEIGHBOUR), "by id": rows_with(str(neighbour.pk))} == before


def test_an_account_whose_address_contains_the_erased_one_stays_signed_in_and_in_the_log():
    user = make_user("ob@example.com")
    for number, address in enumerate(
        ["bob@example.com", "x.ob@example.com", "ob@example.com.au", "ob@example.community"]
    ):
        other = make_user(address, password=PASSWORD)
        reason = f"{address} has asked for it: {number}"
        audit.keep_of_user("warned", other.pk, reason=reason, by=None)
        audit.keep_of_user("warned", other.pk, reason="", by=None, changes={"email": {"after": address}})
        browser = Client()
        browser.post("/accounts/login/", {"login": address, "password": PASSWORD})
        erase_wholly(request_erasure(user.pk).pk)
        assert browser.get("/account/usage").status_code == 200, address
        assert AuditLog.objects.filter(subject_id=other.pk).count() == 2, address
        user = make_user("ob@example.com")


@pytest.mark.parametrize(
    "text", ["Ob@example.com.", "<ob@example.com>", "mail ob@example.com, please", "email='ob@example.com'"]
)
def test_whatever_is_around_its_address_an_erased_account_is_named_no_more(text):
    user = make_user("ob@example.com")
    audit.keep_of_user("warned", make_user().pk, reason=text, by=None, changes={"email": {"after": text}})
    erase_wholly(request_erasure(user.pk).pk)
    act = AuditLog.objects.get(action="warned")
    assert "example" not in f"{act.reason}{act.changes}"


def test_what_the_law_keeps_is_there_and_names_nobody():
    user, made = fill(WORD)
    invoice, note = made[Invoice], made[CreditNote]
    erase_wholly(request_erasure(user.pk).pk)
    kept = Invoice.objects.get(pk=invoice.pk)
    assert (kept.total, kept.period_start) == (invoice.total, invoice.period_start)
    assert (kept.user, kept.customer_name, kept.customer_email) == (None, "Erased", "")
    assert CreditNote.objects.get(pk=note.pk).amount == note.amount
    assert kept.subscription.user is None


def test_staff_still_account_for_what_they_did():
    user, _ = fill(WORD)
    erase_wholly(request_erasure(user.pk).pk)
    act = AuditLog.objects.get(action="suspend")
    assert act.actor is not None
    assert (act.subject_id, act.changes) == ("", {})


def test_the_receipt_lists_every_store_with_its_count():
    user, _ = fill(WORD)
    erasure = erase_wholly(request_erasure(user.pk).pk)
    counts = {entry["name"]: entry for entry in erasure.stores}
    assert counts["conversations"]["parts"]["messages"] == 1
    assert counts["memories"]["erased"] == 1
    assert counts["API keys"]["erased"] == 1
    assert counts[ACCOUNT]["erased"] == 1
    assert all(entry["done_at"] for entry in erasure.stores)


def test_the_address_can_sign_up_anew_and_finds_nothing():
    user, _ = fill(WORD)
    erase_wholly(request_erasure(user.pk).pk)
    again = User.objects.create_user(f"{WORD}@example.com")
    for model in models_of_accounts():
        for field in model._meta.concrete_fields:
            if field.is_relation and field.related_model is User:
                assert not model._default_manager.filter(**{field.name: again}).exists()


def test_erased_again_and_again_it_changes_nothing():
    user, _ = fill(WORD)
    erasure = erase_wholly(request_erasure(user.pk).pk)
    before = Erasure.objects.values().get(pk=erasure.pk)
    erase_wholly(erasure.pk)
    assert Erasure.objects.values().get(pk=erasure.pk) == before
