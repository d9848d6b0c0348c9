"""The way to Stripe's pages and back."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import time_machine
from django.db import connections

from accounts.models import StripeCustomer, Subscription, User
from tests.accounts.factories import signed_in_as

pytestmark = pytest.mark.django_db


def test_without_keys_the_page_offers_payment_by_invoice_only(alice, plus):
    page = signed_in_as(alice).get("/account/billing").text
    assert 'action="/account/billing/plan"' in page
    assert "checkout" not in page
    assert "portal" not in page


def choose(user, tier, attempt=None):
    return signed_in_as(user).post("/account/billing/checkout", {"tier": tier, "attempt": str(attempt or uuid4())})


def test_choosing_a_plan_leads_to_stripes_page_and_changes_nothing_here(stripe, alice, plus):
    answer = choose(alice, "plus")
    assert (answer.status_code, answer["Location"].startswith(f"{stripe.url}/pay/")) == (302, True)
    (asked,) = stripe.asked("POST", "checkout/sessions")
    assert asked["line_items"] == {"0": {"price": "price_plus", "quantity": "1"}}
    assert asked["subscription_data"]["metadata"]["user_id"] == str(alice.pk)
    assert asked["success_url"].endswith("/account/billing/done")
    assert User.objects.get(pk=alice.pk).tier_id == "free"
    assert not Subscription.objects.exists()


def test_coming_back_is_no_payment(stripe, alice, plus):
    answer = signed_in_as(alice).get("/account/billing/done")
    assert answer["Location"] == "/account/billing"
    assert User.objects.get(pk=alice.pk).tier_id == "free"


def test_the_same_attempt_twice_is_one_payment_and_one_customer(stripe, alice, plus):
    attempt = uuid4()
    first, second = choose(alice, "plus", attempt), choose(alice, "plus", attempt)
    assert first["Location"] == second["Location"]
    assert len(stripe.things["customers"]) == 1
    assert [session["status"] for session in stripe.things["checkout/sessions"].values()] == ["open"]


def test_a_payment_begun_in_another_tab_can_no_longer_be_made(stripe, alice, plus, enterprise):
    choose(alice, "plus")
    choose(alice, "enterprise")
    assert [session["status"] for session in stripe.things["checkout/sessions"].values()] == ["expired", "open"]


@pytest.mark.django_db(transaction=True)
def test_many_clicks_at_once_make_one_customer(stripe, alice, plus):
    attempt = uuid4()
    browser = signed_in_as(alice)

    def click(_):
        try:
            return browser.post("/account/billing/checkout", {"tier": "plus", "attempt": str(attempt)})["Location"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(click, range(8)))) == 1
    assert StripeCustomer.objects.count() == 1
    assert len(stripe.things["customers"]) == 1


@pytest.mark.parametrize("tier", ["free", "no-such-tier", "", "../plus"])
def test_what_is_no_plan_on_offer_leads_nowhere(stripe, alice, plus, tier):
    answer = choose(alice, tier)
    assert answer.status_code == 404 or answer["Location"] == "/account/billing"
    assert stripe.asked("POST", "checkout/sessions") == []


def test_who_pays_by_stripe_already_is_sent_to_the_portal(stripe, alice, plus):
    Subscription.objects.create(user=alice, tier=plus, provider="stripe")
    assert choose(alice, "plus")["Location"] == "/account/billing"
    assert stripe.asked("POST", "checkout/sessions") == []
    answer = signed_in_as(alice).post("/account/billing/portal")
    assert answer["Location"].startswith(f"{stripe.url}/portal/")


@pytest.mark.parametrize(("fault", "tries"), [(500, 3), ("drop", 3), (429, 1)])
def test_where_stripe_is_away_a_sentence_says_so_and_the_next_try_goes_on(stripe, alice, plus, fault, tries):
    browser, attempt = signed_in_as(alice), uuid4()
    stripe.faults.extend([fault] * tries)
    answer = browser.post("/account/billing/checkout", {"tier": "plus", "attempt": str(attempt)}, follow=True)
    assert "Payments cannot be reached right now." in answer.text
    assert choose(alice, "plus", attempt)["Location"].startswith(stripe.url)


def test_an_answer_that_was_lost_makes_nothing_twice(stripe, alice, plus):
    stripe.faults.extend(["lost"])
    choose(alice, "plus")
    assert len(stripe.things["customers"]) == 1
    assert StripeCustomer.objects.get().customer_id in stripe.things["customers"]


@pytest.mark.parametrize("path", ["checkout", "portal"])
@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "made with another key"])
def test_a_customer_whom_stripe_no_longer_has_is_made_anew(stripe, alice, customer, plus, path, deleted):
    if deleted:
        stripe.delete_customer(customer)
    else:
        del stripe.things["customers"][customer]
    answer = signed_in_as(alice).post(f"/account/billing/{path}", {"tier": "plus", "attempt": str(uuid4())})
    assert answer["Location"].startswith(stripe.url)
    assert list(stripe.things["customers"]) == [StripeCustomer.objects.get().customer_id] != [customer]


def test_a_customer_whose_making_failed_after_it_was_done_is_found(stripe, alice, plus):
    stripe.faults.extend([None, "failed"])  # looked for, and begun
    browser = signed_in_as(alice)
    answer = browser.post("/account/billing/checkout", {"tier": "plus", "attempt": str(uuid4())}, follow=True)
    assert "Payments cannot be reached right now." in answer.text
    assert choose(alice, "plus")["Location"].startswith(stripe.url)
    assert len(stripe.things["customers"]) == 1


def test_a_customer_whose_making_failed_is_made_an_hour_later(stripe, alice, plus):
    stripe.faults.extend([None, "failed"])
    for _ in range(2):
        assert choose(alice, "plus")["Location"] == "/account/billing"
        stripe.things["customers"].clear()
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1)):
        assert choose(alice, "plus")["Location"].startswith(stripe.url)


def test_keys_are_the_same_over_retries_and_others_for_another_choice(stripe, alice, plus, enterprise):
    attempt = uuid4()
    stripe.faults.extend([None, "drop", "drop", None, None, "drop", "drop"])
    for tier in ("plus", "enterprise"):
        choose(alice, tier, attempt)
    made = [key for path, key in stripe.keys if path == "customers"]
    begun = [key for path, key in stripe.keys if path == "checkout/sessions"]
    assert (len(made), len(set(made))) == (3, 1)
    assert (len(begun), len(set(begun))) == (4, 2)
    assert len(stripe.things["customers"]) == 1


@pytest.mark.parametrize("path", ["checkout", "portal"])
def test_while_stripe_is_away_the_page_says_so_and_the_plan_stays(stripe, alice, customer, plus, path):
    stripe.faults.extend(["drop"] * 3)
    browser = signed_in_as(alice)
    answer = browser.post(f"/account/billing/{path}", {"tier": "plus", "attempt": str(uuid4())}, follow=True)
    assert answer.status_code == 200
    assert "Payments cannot be reached right now. Nothing has changed; try again in a few minutes." in answer.text
    assert "Choose plus" in answer.text
    assert User.objects.get(pk=alice.pk).tier_id == "free"


@pytest.mark.parametrize("path", ["checkout", "portal"])
def test_without_keys_or_without_signing_in_there_is_no_such_address(client, alice, path):
    browser = signed_in_as(alice)
    assert browser.post(f"/account/billing/{path}").status_code == 404
    assert browser.get("/account/billing/done").status_code == 404
    assert client.post(f"/account/billing/{path}")["Location"].startswith("/accounts/login/")
