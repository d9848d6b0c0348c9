"""Which credentials open the API, and what each failure answers."""

from datetime import timedelta

import pytest
import time_machine
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from accounts.api_keys import revoke_key
from accounts.callers import caller_from_bearer, caller_from_session
from accounts.exceptions import NotAuthenticated
from accounts.models import APIKey
from accounts.tasks import write_down_key_uses
from foundation.database import in_database
from tests.accounts.factories import bearer, make_key, make_key_row, make_user

pytestmark = pytest.mark.django_db

# A key of this shape exists nowhere: 43 characters, as a real one has.
UNKNOWN_KEY = "ck_" + "a" * 43
NO_CREDENTIALS = [
    "",
    " ",
    "ck_",
    "ck_' OR '1'='1",
    "' OR 1=1; DROP TABLE accounts_user; --",
    UNKNOWN_KEY,
    UNKNOWN_KEY + "a",
    "ck_" + "é" * 43,
    "ck_" + "a" * 42 + "\x00",
    "\x00",
    "a" * 100_000,
    "ck_" + "a" * 100_000,
    "日本語",
    "a.b.c",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.",
    "two words",
]


def code_of(response):
    return response.json()["error"]["code"]


def test_a_key_opens_the_api(client):
    response = client.get("/v1/limits", headers=bearer(make_key(make_user())))
    assert response.status_code == 200


def test_a_call_without_a_credential_is_told_how_to_authenticate(client):
    response = client.get("/v1/limits")
    assert (response.status_code, code_of(response)) == (401, "not_authenticated")
    assert response["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in response.json()["error"]["message"]


@pytest.mark.parametrize("token", NO_CREDENTIALS, ids=range(len(NO_CREDENTIALS)))
def test_whatever_is_no_credential_is_plainly_refused(client, token):
    response = client.get("/v1/limits", headers=bearer(token))
    assert (response.status_code, code_of(response)) == (401, "not_authenticated")
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("token", NO_CREDENTIALS, ids=range(len(NO_CREDENTIALS)))
def test_whatever_is_no_credential_is_refused_outside_of_views_too(token):
    with pytest.raises(NotAuthenticated):
        caller_from_bearer(token)


def test_a_wrong_bearer_is_refused_even_beside_a_good_session(client):
    client.force_login(make_user())
    assert client.get("/v1/limits", headers=bearer(UNKNOWN_KEY)).status_code == 401


def test_a_revoked_key_opens_nothing(client):
    key, secret = make_key_row(make_user())
    revoke_key(key)
    response = client.get("/v1/limits", headers=bearer(secret))
    assert (response.status_code, code_of(response)) == (401, "key_revoked")


def test_an_expired_key_opens_nothing(client):
    secret = make_key(make_user(), expires_at=timezone.now() - timedelta(seconds=1))
    response = client.get("/v1/limits", headers=bearer(secret))
    assert (response.status_code, code_of(response)) == (401, "key_revoked")


def test_a_suspended_accounts_key_says_so(client):
    secret = make_key(make_user(is_active=False))
    response = client.get("/v1/limits", headers=bearer(secret))
    assert (response.status_code, code_of(response)) == (403, "account_suspended")


def test_a_suspended_accounts_session_says_so(client):
    user = make_user()
    client.force_login(user)
    user.is_active = False
    user.save()
    response = client.get("/v1/limits")
    assert (response.status_code, code_of(response)) == (403, "account_suspended")


def test_a_key_without_the_scope_is_told_which_it_lacks(client):
    response = client.get("/v1/api-keys", headers=bearer(make_key(make_user(), ["chat", "read"])))
    assert (response.status_code, code_of(response)) == (403, "scope_missing")
    assert "`account`" in response.json()["error"]["message"]


def test_a_session_has_every_scope(client):
    client.force_login(make_user())
    assert client.get("/v1/api-keys").status_code == 200
    assert client.get("/v1/limits").status_code == 200


def test_a_session_cannot_change_anything_without_a_csrf_token():
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user())
    response = client.post("/v1/api-keys", {"scopes": ["chat"]}, content_type="application/json")
    assert (response.status_code, code_of(response)) == (403, "csrf_failed")
    assert not APIKey.objects.exists()


def test_a_session_with_a_csrf_token_can_change_something():
    client = Client(enforce_csrf_checks=True)
    client.get("/accounts/login/")
    token = client.cookies["csrftoken"].value
    client.force_login(make_user())
    response = client.post(
        "/v1/api-keys", {"scopes": ["chat"]}, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert response.status_code == 201


def test_a_key_needs_no_csrf_token():
    client = Client(enforce_csrf_checks=True)
    secret = make_key(make_user())
    body = {"scopes": ["chat"]}
    response = client.post("/v1/api-keys", body, content_type="application/json", headers=bearer(secret))
    assert response.status_code == 201


def test_a_method_that_there_is_not_is_told_so(client):
    response = client.put("/v1/limits", headers=bearer(make_key(make_user())))
    assert (response.status_code, code_of(response)) == (405, "method_not_allowed")


def test_a_key_is_looked_up_in_one_query_with_its_account_and_tier(django_assert_num_queries):
    secret = make_key(make_user(tier="plus"))
    caller_from_bearer(secret)
    with django_assert_num_queries(1):
        assert caller_from_bearer(secret).user.tier.name == "plus"


def test_a_session_is_resolved_with_its_tier_in_two_queries(client, django_assert_num_queries):
    client.force_login(make_user(tier="plus"))
    session = type(client.session)(client.session.session_key)
    with django_assert_num_queries(2):
        assert caller_from_session(session).user.tier.name == "plus"


def test_the_last_use_of_a_key_is_noted_once_a_minute_and_off_the_requests_path(django_assert_num_queries):
    key, secret = make_key_row(make_user())
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False) as clock:
        with django_assert_num_queries(1):
            caller_from_bearer(secret)
        first = _written_down(key)
        clock.shift(59)
        caller_from_bearer(secret)
        assert _written_down(key) == first
        clock.shift(1)
        caller_from_bearer(secret)
        assert _written_down(key) == first + timedelta(minutes=1)


def _written_down(key):
    for _ in range(2):
        write_down_key_uses()
    return APIKey.objects.get(pk=key.pk).last_used_at


def test_a_wrong_key_costs_no_write(django_assert_num_queries):
    with django_assert_num_queries(1), pytest.raises(NotAuthenticated):
        caller_from_bearer(UNKNOWN_KEY)


def test_what_is_not_shaped_like_a_key_costs_no_query(django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(NotAuthenticated):
        caller_from_bearer("ck_short")


def test_a_session_names_who_signed_in(client):
    user = make_user()
    client.force_login(user)
    assert caller_from_session(client.session).user == user


def test_an_anonymous_session_names_nobody(client):
    with pytest.raises(NotAuthenticated):
        caller_from_session(client.session)


@pytest.mark.django_db(transaction=True)
def test_async_code_learns_who_calls_through_a_database_thread():
    user = make_user()
    caller = async_to_sync(in_database)(caller_from_bearer, make_key(user))
    assert caller.user.pk == user.pk
