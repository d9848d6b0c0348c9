"""Whether an address has an account is not told: not by status, headers or body, and not by how much work it makes."""

import re

import pytest
from django.test import Client

from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

APP = "/_allauth/app/v1/auth/"
KNOWN, UNKNOWN = "alice@example.com", "carol@example.com"


@pytest.fixture(autouse=True)
def alice(settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    return make_user(KNOWN, password=PASSWORD)


@pytest.fixture
def hashed(monkeypatch):
    """Every hash of a password that is made."""
    made = []
    monkeypatch.setattr(
        "django.contrib.auth.hashers.MD5PasswordHasher.encode",
        lambda self, password, salt: made.append(password) or f"md5${salt}$x",
    )
    return made


def page(path, **fields):
    return lambda email: Client().post(path, {name: value or email for name, value in fields.items()})


def app(path, **fields):
    return lambda email: Client().post(
        APP + path, {name: value or email for name, value in fields.items()}, content_type="application/json"
    )


WAYS = {
    "sign-in page": page("/accounts/login/", login=None, password="wrong"),
    "sign-in app": app("login", email=None, password="wrong"),
    "sign-up page": page("/accounts/signup/", email=None, password1="a-long-password-of-9-words"),
    "sign-up app": app("signup", email=None, password="a-long-password-of-9-words"),
    "reset page": page("/accounts/password/reset/", email=None),
    "reset app": app("password/request", email=None),
}


def seen(response, email):
    """Return what a stranger sees, but for what differs between any two answers."""
    text = re.sub(r'"session_token": "[^"]+"|value="[^"]*"|nonce="[^"]*"', "", response.text.replace(email, "ADDRESS"))
    headers = {name for name in response.headers if name != "X-Request-ID"}
    return response.status_code, response.headers.get("Location"), headers, text


@pytest.mark.parametrize("way", WAYS)
def test_a_known_and_an_unknown_address_are_answered_alike(way, hashed, mailoutbox):
    answers, work = [], []
    for email in (KNOWN, UNKNOWN):
        hashed.clear()
        mailoutbox.clear()
        answers.append(seen(WAYS[way](email), email))
        work.append((len(hashed), len(mailoutbox)))
    assert answers[0] == answers[1]
    assert work[0] == work[1], "as many hashes and mails"


def test_whoever_signs_up_twice_with_a_known_address_cannot_measure_it(hashed):
    for _ in range(2):
        hashed.clear()
        WAYS["sign-up page"](KNOWN)
        assert len(hashed) == 1


@pytest.mark.parametrize("mode", ["closed", "invite", "domain"])
@pytest.mark.parametrize("way", ["reset page", "reset app"])
def test_a_password_can_be_reset_whoever_may_sign_up(settings, mailoutbox, way, mode):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = mode, ["elsewhere.example"]
    answers = [seen(WAYS[way](email), email) for email in (KNOWN, UNKNOWN)]
    assert answers[0] == answers[1]
    assert mailoutbox[0].to == [KNOWN]
    assert "password" in mailoutbox[0].subject.lower()
