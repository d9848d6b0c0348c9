"""Who signs in elsewhere and has no password says by a mailed code that it is them who has the account erased."""

import re

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.utils import timezone

from accounts.models import Erasure
from tests.accounts.factories import PASSWORD, make_user, signed_in_as

pytestmark = pytest.mark.django_db

ASK, CONFIRM = "/accounts/reauthenticate/code/", "/accounts/reauthenticate/code/confirm/"
DELETE = "/account/delete"


def make_owner(**fields):
    user = make_user("alice@example.com", **fields)
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})
    return user


@pytest.fixture
def browser():
    return signed_in_as(make_owner())


def mailed_code(browser):
    assert browser.post(ASK, {"recipient": "alice@example.com", "next": DELETE}).status_code == 302
    [sent] = mail.outbox
    assert sent.to == ["alice@example.com"]
    [code] = re.findall(r"minutes:\n\n(\S+)\n", sent.body)
    return code


def test_a_mailed_code_opens_the_page_and_the_address_erases_the_account(browser):
    asked = browser.get(DELETE)
    assert asked["Location"] == f"{ASK}?next=%2Faccount%2Fdelete"
    assert "Mail a code to alice@example.com" in browser.get(asked["Location"]).text
    code = mailed_code(browser)
    assert "alice@example.com" in browser.get(CONFIRM).text
    assert browser.post(CONFIRM, {"code": code, "next": DELETE})["Location"] == DELETE
    assert browser.get(DELETE).status_code == 200
    assert browser.post(DELETE, {"address": "alice@example.com"}).status_code == 302
    assert Erasure.objects.exists()


def test_wrong_codes_open_nothing_and_use_the_code_up(browser):
    code = mailed_code(browser)
    for _ in range(3):
        browser.post(CONFIRM, {"code": "WRONG1", "next": DELETE})
    browser.post(CONFIRM, {"code": code, "next": DELETE})
    assert browser.get(DELETE).status_code == 302
    assert not Erasure.objects.exists()


def test_a_code_is_not_good_for_long(browser, time_machine):
    time_machine.move_to(timezone.now(), tick=False)
    code = mailed_code(browser)
    time_machine.shift(601)
    browser.post(CONFIRM, {"code": code, "next": DELETE})
    assert browser.get(DELETE).status_code == 302


def test_no_code_is_mailed_to_any_other_address(browser):
    assert browser.post(ASK, {"recipient": "mallory@example.com"}).status_code == 200
    assert mail.outbox == []


def test_who_has_a_password_says_that_and_is_mailed_no_code():
    browser = signed_in_as(make_owner(password=PASSWORD))
    assert browser.get(DELETE)["Location"].startswith("/accounts/reauthenticate/?")
    assert browser.get(ASK)["Location"].startswith("/accounts/reauthenticate/")
    browser.post(ASK, {"recipient": "alice@example.com"})
    assert mail.outbox == []
