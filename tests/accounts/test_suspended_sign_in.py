"""Signing in to a suspended account: its owner reads why and until when, and nobody else learns anything."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts import sanctions
from accounts.callers import Caller
from accounts.exceptions import AccountSuspended
from accounts.standing import refusals_of
from tests.accounts.factories import PASSWORD, make_user
from tests.accounts.test_access_tokens import sign_in as sign_in_by_app

pytestmark = pytest.mark.django_db
REASON = "Sent the same <b>advertisement</b> to everybody."
SHOWN_REASON = "Sent the same &lt;b&gt;advertisement&lt;/b&gt; to everybody."
UNTIL = datetime(2126, 3, 4, 9, 30, tzinfo=UTC)


@pytest.fixture
def ann():
    return make_user("ann@example.com", password=PASSWORD)


@pytest.fixture
def chief():
    return make_user("chief@example.com", is_staff=True)


def sign_in(client, email, password=PASSWORD):
    return client.post("/accounts/login/", {"login": email, "password": password})


def sign_in_as_an_app(client, email, password=PASSWORD):
    body = {"email": email, "password": password}
    return client.post("/_allauth/app/v1/auth/login", body, content_type="application/json")


def without_what_was_typed(page):
    return re.sub(r'value="[^"]*"', "", page.text)


def test_the_page_says_why_and_until_when_and_not_by_whom(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief, ends_at=UNTIL, why="Ticket 4711, as the lawyers said.")
    page = sign_in(client, ann.email)
    assert page.status_code == 403
    assert SHOWN_REASON in page.text
    assert "4 March 2126, 09:30 (UTC)" in page.text
    assert chief.email not in page.text
    assert "4711" not in page.text
    assert "_auth_user_id" not in client.session


def test_the_end_is_told_in_the_time_of_the_account(client, chief):
    far = make_user("far@example.com", password=PASSWORD, time_zone="Asia/Kolkata")
    sanctions.suspend(far, reason=REASON, by=chief, ends_at=UNTIL)
    assert "4 March 2126, 15:00 (Asia/Kolkata)" in sign_in(client, far.email).text


def test_a_suspension_without_an_end_names_none(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief)
    page = sign_in(client, ann.email)
    assert SHOWN_REASON in page.text
    assert "<time" not in page.text


def test_of_two_suspensions_the_longer_one_is_told(client, ann, chief):
    sanctions.suspend(ann, reason="The longer one.", by=chief, ends_at=UNTIL)
    sanctions.suspend(ann, reason="The shorter one.", by=chief, ends_at=UNTIL - timedelta(days=1))
    page = sign_in(client, ann.email).text
    assert "The longer one." in page
    assert "The shorter one." not in page


def test_a_wrong_password_tells_no_more_than_an_unknown_address(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief)
    suspended, unknown = sign_in(client, ann.email, "wrong"), sign_in(client, "nobody@example.com", "wrong")
    assert suspended.status_code == unknown.status_code == 200
    assert without_what_was_typed(suspended) == without_what_was_typed(unknown)
    assert "suspended" not in suspended.text


def test_the_address_of_the_page_alone_tells_nothing(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief)
    assert SHOWN_REASON not in client.get("/accounts/inactive/").text


def test_an_app_is_told_why_and_until_when(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief, ends_at=UNTIL)
    answer = sign_in_as_an_app(client, ann.email)
    assert answer.status_code == 403
    [error] = answer.json()["errors"]
    assert (error["code"], error["reason"], error["ends_at"]) == ("account_suspended", REASON, UNTIL.isoformat())
    assert "meta" not in answer.json()


def test_an_app_with_a_wrong_password_learns_nothing(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief)
    suspended = sign_in_as_an_app(client, ann.email, "wrong")
    unknown = sign_in_as_an_app(client, "nobody@example.com", "wrong")
    assert (suspended.status_code, suspended.json()) == (unknown.status_code, unknown.json())


def test_after_the_end_the_account_signs_in_again(client, ann, chief):
    sanctions.suspend(ann, reason=REASON, by=chief, ends_at=timezone.now() + timedelta(days=1))
    sanctions.end_due(timezone.now() + timedelta(days=1))
    assert sign_in(client, ann.email)["Location"] == "/"
    assert sign_in_by_app(client, ann)["access_token"]


def test_what_is_open_ends_with_the_same_sentence(ann, chief):
    caller = Caller(user=ann, scopes=frozenset(), credential="session:1", session_key="1")
    sanctions.suspend(ann, reason=REASON, by=chief, ends_at=UNTIL)
    [refusal] = refusals_of([caller])
    assert isinstance(refusal, AccountSuspended)
    assert "until 2126-03-04 09:30 UTC" in refusal.message
    assert refusal.details == {"reason": REASON, "ends_at": UNTIL.isoformat()}
