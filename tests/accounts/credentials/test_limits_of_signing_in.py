"""How often somebody may try: on the pages and in the app login, by network address and by account."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from allauth.mfa.totp.internal.auth import TOTP
from django.test import Client

from tests.accounts.factories import PASSWORD, make_user, signed_in_as

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
def test_strangers_who_guess_on_keep_the_owner_out_no_longer_than_was_told(alice, login):
    beginning = datetime.now(UTC)
    with time_machine.travel(beginning) as clock:
        for number in range(5):
            login(alice.email, REMOTE_ADDR=f"10.0.0.{number}")
        clock.move_to(beginning + timedelta(seconds=240))
        for number in range(5, 10):
            assert login(alice.email, REMOTE_ADDR=f"10.0.0.{number}").status_code == 429
        clock.move_to(beginning + timedelta(seconds=305))
        assert login(alice.email, PASSWORD, REMOTE_ADDR="10.0.0.99").status_code in (200, 302)


def test_who_is_signed_in_notices_nothing_of_strangers_who_guess(alice):
    owner = signed_in_as(alice)
    for number in range(6):
        page_login(alice.email, REMOTE_ADDR=f"10.0.0.{number}")
    assert owner.get("/account/api-keys").status_code == 200


def page_with_password(user):
    client = Client()
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    return lambda code, **meta: client.post("/accounts/2fa/authenticate/", {"code": code}, **meta)


def app_with_password(user):
    client = Client()
    asked = app_login(user.email, PASSWORD)
    headers = {"X-Session-Token": asked.json()["meta"]["session_token"]}
    path = f"{APP}2fa/authenticate"
    return lambda code, **meta: client.post(
        path, {"code": code}, content_type="application/json", headers=headers, **meta
    )


def page_to_set_up_an_app(user):
    client = Client()
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return lambda code, **meta: client.post("/accounts/2fa/totp/activate/", {"code": code}, **meta)


def page_of_somebody_signed_in(user):
    client = signed_in_as(user)
    return lambda code, **meta: client.post("/accounts/2fa/reauthenticate/", {"code": code}, **meta)


@pytest.mark.parametrize("way_in", [page_with_password, app_with_password, page_of_somebody_signed_in])
def test_guessing_the_codes_of_a_second_factor_is_answered_429(alice, way_in):
    TOTP.activate(alice, "JBSWY3DPEHPK3PXP")
    guess = way_in(alice)
    for number in range(5):
        assert guess("000000", REMOTE_ADDR=f"10.0.0.{number}").status_code < 429
    stopped = guess("000000", REMOTE_ADDR="10.0.0.99")
    assert (stopped.status_code, stopped["Retry-After"]) == (429, "300")


def test_guessing_codes_is_counted_by_network_address_too():
    people = [make_user(password=PASSWORD) for _ in range(3)]
    statuses = []
    for person in people:
        TOTP.activate(person, "JBSWY3DPEHPK3PXP")
        guess = page_with_password(person)
        statuses += [guess("000000", REMOTE_ADDR="10.0.0.1").status_code for _ in range(4)]
    assert statuses == [200] * 10 + [429] * 2


def test_trying_codes_while_an_app_is_set_up_is_limited_too(alice):
    try_code = page_to_set_up_an_app(alice)
    statuses = [try_code("000000", REMOTE_ADDR=f"10.0.0.{number}").status_code for number in range(6)]
    assert statuses == [200] * 5 + [429]


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
