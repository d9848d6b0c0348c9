"""How often somebody may try: on the pages and in the app login, by network address and by account."""

import pytest
from django.test import Client

from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

APP = "/_allauth/app/v1/auth/"


@pytest.fixture
def alice():
    return make_user("alice@example.com", password=PASSWORD)


def post_json(path, body, **meta):
    return Client().post(APP + path, body, content_type="application/json", **meta)


def page_login(email, password="wrong", **meta):
    return Client().post("/accounts/login/", {"login": email, "password": password}, **meta)


def app_login(email, password="wrong", **meta):
    return post_json("login", {"email": email, "password": password}, **meta)


@pytest.mark.parametrize("login", [page_login, app_login])
@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
def test_guessing_one_accounts_password_is_answered_429_whether_it_exists_or_not(alice, login, email):
    for number in range(5):
        assert login(email, REMOTE_ADDR=f"10.0.0.{number}").status_code < 429
    stopped = login(email, PASSWORD, REMOTE_ADDR="10.0.0.99")
    assert (stopped.status_code, stopped["Retry-After"]) == (429, "300")


@pytest.mark.parametrize("login", [page_login, app_login])
def test_guessing_from_one_network_address_is_answered_429(login):
    statuses = [login(f"person{number}@example.com").status_code for number in range(12)]
    assert set(statuses[:10]) & {429} == set()
    assert statuses[-1] == 429


@pytest.mark.parametrize(
    ("call", "times"),
    [
        (lambda n: Client().post("/accounts/signup/", {"email": f"n{n}@example.com", "password1": "short"}), 20),
        (lambda n: post_json("signup", {"email": f"n{n}@example.com", "password": "x"}), 20),
        (lambda n: Client().post("/accounts/password/reset/", {"email": "alice@example.com"}), 5),
        (lambda n: post_json("password/request", {"email": "alice@example.com"}), 5),
        (lambda n: Client().post("/accounts/2fa/webauthn/login/", {"credential": "{}"}), 10),
    ],
    ids=["sign-up page", "sign-up app", "reset page", "reset app", "passkey"],
)
def test_the_other_ways_in_are_limited_too(call, times):
    for number in range(times):
        assert call(number).status_code != 429
    stopped = call(times)
    assert (stopped.status_code, stopped["Retry-After"]) == (429, "60")


def test_a_forged_forwarding_header_is_not_believed(alice):
    statuses = [
        page_login(f"person{number}@example.com", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code
        for number in range(12)
    ]
    assert statuses[-1] == 429


def test_behind_a_trusted_proxy_each_address_counts_by_itself(settings):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    statuses = [
        page_login(f"person{number}@example.com", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code
        for number in range(12)
    ]
    assert 429 not in statuses


def test_an_unknown_address_costs_a_password_check_too(alice, monkeypatch):
    counted = []
    monkeypatch.setattr(
        "django.contrib.auth.hashers.MD5PasswordHasher.encode",
        lambda self, password, salt: counted.append(password) or f"md5${salt}$x",
    )
    for email in ("alice@example.com", "nobody@example.com"):
        counted.clear()
        app_login(email)
        assert len(counted) == 1, email
