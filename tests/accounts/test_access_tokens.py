"""Signing in as an app: access tokens, their renewal, and their end."""

import jwt
import pytest
import time_machine
from allauth.usersessions.models import UserSession
from django.conf import settings

from accounts.callers import caller_from_bearer
from accounts.exceptions import NotAuthenticated
from tests.accounts.factories import PASSWORD, bearer, make_user

pytestmark = pytest.mark.django_db

LOGIN = "/_allauth/app/v1/auth/login"
SESSION = "/_allauth/app/v1/auth/session"
REFRESH = "/_allauth/app/v1/tokens/refresh"


@pytest.fixture
def alice():
    return make_user("alice@example.com", password=PASSWORD)


def post(client, address, body, **headers):
    return client.post(address, body, content_type="application/json", headers=headers)


def sign_in(client, user):
    response = post(client, LOGIN, {"email": user.email, "password": PASSWORD})
    assert response.status_code == 200, response.text
    return response.json()["meta"]


def renew(client, refresh_token):
    return post(client, REFRESH, {"refresh_token": refresh_token})


def code_of(response):
    return response.json()["error"]["code"]


def test_an_app_signs_in_calls_renews_and_signs_out(client, alice):
    tokens = sign_in(client, alice)
    assert client.get("/v1/limits", headers=bearer(tokens["access_token"])).status_code == 200
    renewed = renew(client, tokens["refresh_token"]).json()["data"]
    assert client.get("/v1/limits", headers=bearer(renewed["access_token"])).status_code == 200
    client.delete(SESSION, headers={"X-Session-Token": tokens["session_token"]})
    for token in (tokens["access_token"], renewed["access_token"]):
        response = client.get("/v1/limits", headers=bearer(token))
        assert (response.status_code, code_of(response)) == (401, "not_authenticated")
    assert renew(client, renewed["refresh_token"]).status_code == 400


def test_an_app_can_sign_out_with_its_access_token(client, alice):
    token = sign_in(client, alice)["access_token"]
    client.delete(SESSION, headers=bearer(token))
    assert client.get("/v1/limits", headers=bearer(token)).status_code == 401


def test_a_refresh_token_works_once(client, alice):
    tokens = sign_in(client, alice)
    assert renew(client, tokens["refresh_token"]).status_code == 200
    assert renew(client, tokens["refresh_token"]).status_code == 400


def test_an_expired_access_token_says_so(client, alice):
    token = sign_in(client, alice)["access_token"]
    with time_machine.travel("2100-01-01T00:00:00Z"):
        response = client.get("/v1/limits", headers=bearer(token))
    assert (response.status_code, code_of(response)) == (401, "token_expired")


def test_a_refresh_token_is_no_access_token(client, alice):
    refresh_token = sign_in(client, alice)["refresh_token"]
    assert client.get("/v1/limits", headers=bearer(refresh_token)).status_code == 401


def test_the_session_token_of_an_app_is_no_access_token(client, alice):
    session_token = sign_in(client, alice)["session_token"]
    assert client.get("/v1/limits", headers=bearer(session_token)).status_code == 401


def test_a_suspended_accounts_token_says_so(client, alice):
    token = sign_in(client, alice)["access_token"]
    alice.is_active = False
    alice.save()
    response = client.get("/v1/limits", headers=bearer(token))
    assert (response.status_code, code_of(response)) == (403, "account_suspended")


def test_a_changed_password_ends_the_tokens(client, alice):
    token = sign_in(client, alice)["access_token"]
    alice.set_password("another-" + PASSWORD)
    alice.save()
    assert client.get("/v1/limits", headers=bearer(token)).status_code == 401


def test_signing_out_elsewhere_ends_the_tokens(client, alice):
    token = sign_in(client, alice)["access_token"]
    UserSession.objects.get(user=alice).end()
    assert client.get("/v1/limits", headers=bearer(token)).status_code == 401


@pytest.mark.parametrize("key", [settings.SECRET_KEY, "", "another" * 10], ids=["secret key", "empty", "another"])
def test_a_token_signed_with_another_key_is_refused(client, alice, key):
    claims = jwt.decode(sign_in(client, alice)["access_token"], options={"verify_signature": False})
    forged = jwt.encode(claims, key, algorithm="HS256") if key else jwt.encode(claims, None, algorithm="none")
    with pytest.raises(NotAuthenticated):
        caller_from_bearer(forged)


def test_an_expired_token_with_a_wrong_signature_does_not_pass_for_ours(alice):
    forged = jwt.encode({"sub": str(alice.pk), "exp": 1}, "another" * 10, algorithm="HS256")
    with pytest.raises(NotAuthenticated):
        caller_from_bearer(forged)


def test_a_token_cannot_be_passed_on_to_another_account(client, alice):
    bob = make_user("bob@example.com", password=PASSWORD)
    claims = jwt.decode(sign_in(client, alice)["access_token"], options={"verify_signature": False})
    swapped = jwt.encode({**claims, "sub": str(bob.pk)}, settings.HEADLESS_JWT_PRIVATE_KEY, algorithm="HS256")
    with pytest.raises(NotAuthenticated):
        caller_from_bearer(swapped)


def test_a_wrong_password_gets_no_token_and_tells_nothing_about_the_account(client, alice):
    wrong = post(client, LOGIN, {"email": alice.email, "password": "wrong"})
    nobody = post(client, LOGIN, {"email": "nobody@example.com", "password": "wrong"})
    assert wrong.status_code == nobody.status_code == 400
    assert wrong.json() == nobody.json()
    assert "access_token" not in wrong.text


def test_an_access_token_is_resolved_with_its_tier_in_two_queries(client, alice, django_assert_num_queries):
    token = sign_in(client, alice)["access_token"]
    with django_assert_num_queries(2):
        assert caller_from_bearer(token).user.tier.name == "free"
