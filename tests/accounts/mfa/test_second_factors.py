"""Authenticator apps, recovery codes, and who must have a second factor."""

import re
import time

import pytest
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from django.test import Client

from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

SECRET = "JBSWY3DPEHPK3PXP"


@pytest.fixture
def alice():
    return make_user("alice@example.com", password=PASSWORD)


@pytest.fixture
def staff(settings):
    settings.STAFF_NEEDS_SECOND_FACTOR = True
    return make_user("staff@example.com", password=PASSWORD, is_staff=True, is_superuser=True)


def code_of(secret, steps=0):
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


def sign_in(client, user):
    return client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})


def is_signed_in(client):
    return "_auth_user_id" in client.session


def enter(client, code):
    return client.post("/accounts/2fa/authenticate/", {"code": code})


def test_an_app_is_set_up_with_a_code_and_asked_for_from_then_on(client, alice):
    sign_in(client, alice)
    asked = client.get("/accounts/2fa/totp/activate/")
    page = client.post(asked["Location"], {"password": PASSWORD}, follow=True).text
    secret = re.search(r'id="secret"[^>]*>([\w ]+)<', page)[1]
    assert "data:image/svg+xml" in page
    client.post("/accounts/2fa/totp/activate/", {"code": "000000"})
    assert not Authenticator.objects.exists()
    client.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    assert Authenticator.objects.filter(user=alice, type="totp").exists()
    assert "Recovery codes" in client.get("/accounts/2fa/recovery-codes/").text
    elsewhere = Client()
    assert sign_in(elsewhere, alice)["Location"] == "/accounts/2fa/authenticate/"
    assert not is_signed_in(elsewhere)
    enter(elsewhere, code_of(secret, 1))
    assert is_signed_in(elsewhere)


def test_a_code_is_good_once(client, alice):
    TOTP.activate(alice, SECRET)
    code = code_of(SECRET)
    sign_in(client, alice)
    enter(client, code)
    assert is_signed_in(client)
    thief = Client()
    sign_in(thief, alice)
    enter(thief, code)
    assert not is_signed_in(thief)


def test_a_recovery_code_is_good_once(client, alice):
    TOTP.activate(alice, SECRET)
    code = RecoveryCodes.activate(alice).get_unused_codes()[0]
    for who, is_let_in in ((client, True), (Client(), False)):
        sign_in(who, alice)
        enter(who, code)
        assert is_signed_in(who) is is_let_in


def test_guessing_codes_is_stopped(client, alice):
    TOTP.activate(alice, SECRET)
    sign_in(client, alice)
    for number in range(6):
        enter(client, f"{number:06}")
    enter(client, code_of(SECRET))
    assert not is_signed_in(client)


def test_secrets_are_stored_encrypted(alice):
    TOTP.activate(alice, SECRET)
    RecoveryCodes.activate(alice)
    stored = [str(row.data) for row in Authenticator.objects.all()]
    assert all(SECRET not in data for data in stored)
    assert get_adapter().decrypt(Authenticator.objects.get(type="totp").data["secret"]) == SECRET
    assert "gAAAA" in Authenticator.objects.get(type="recovery_codes").data["seed"]


def test_an_app_that_signs_in_is_asked_for_the_second_factor(alice):
    TOTP.activate(alice, SECRET)
    client = Client()
    body = {"email": alice.email, "password": PASSWORD}
    asked = client.post("/_allauth/app/v1/auth/login", body, content_type="application/json")
    assert asked.status_code == 401
    assert next(flow for flow in asked.json()["data"]["flows"] if flow["id"] == "mfa_authenticate")["is_pending"]
    assert "access_token" not in asked.json()["meta"]
    token = {"X-Session-Token": asked.json()["meta"]["session_token"]}
    address = "/_allauth/app/v1/auth/2fa/authenticate"
    wrong = client.post(address, {"code": "000000"}, content_type="application/json", headers=token)
    assert wrong.status_code == 400
    right = client.post(address, {"code": code_of(SECRET)}, content_type="application/json", headers=token)
    assert right.json()["meta"]["access_token"]


@pytest.mark.parametrize("page", ["/", "/admin/", "/account/security", "/account/api-keys"])
def test_staff_without_a_second_factor_are_led_to_set_one_up(client, staff, page):
    sign_in(client, staff)
    response = client.get(page, follow=True)
    assert response.redirect_chain[-1][0] == "/accounts/2fa/"
    assert "set one up to go on" in response.text


def test_staff_with_a_second_factor_get_in(client, staff):
    TOTP.activate(staff, SECRET)
    sign_in(client, staff)
    assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/accounts/2fa/authenticate/"
    enter(client, code_of(SECRET))
    assert client.get("/admin/").status_code == 200


def test_recovery_codes_alone_are_no_second_factor(client, staff):
    RecoveryCodes.activate(staff)
    sign_in(client, staff)
    assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/accounts/2fa/"


def test_the_admin_has_no_way_in_of_its_own(client, staff):
    TOTP.activate(staff, SECRET)
    client.post("/admin/login/", {"username": staff.email, "password": PASSWORD})
    assert not is_signed_in(client)


def test_where_it_is_not_asked_for_staff_get_in_with_a_password(client, staff, settings):
    settings.STAFF_NEEDS_SECOND_FACTOR = False
    sign_in(client, staff)
    assert client.get("/admin/").status_code == 200


def test_others_need_no_second_factor(client, alice, settings):
    settings.STAFF_NEEDS_SECOND_FACTOR = True
    sign_in(client, alice)
    assert client.get("/account/security").status_code == 200


def test_signing_out_everywhere_ends_every_session(client, alice):
    elsewhere = Client()
    sign_in(elsewhere, alice)
    sign_in(client, alice)
    client.post("/account/sign-out-everywhere")
    assert client.get("/v1/limits").status_code == elsewhere.get("/v1/limits").status_code == 401
