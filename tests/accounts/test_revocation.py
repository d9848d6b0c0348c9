"""What is told to those who hold streams and sockets open when a credential ends."""

import pytest

from accounts.api_keys import revoke_key
from accounts.callers import caller_from_bearer, caller_from_session
from accounts.signals import credentials_revoked
from tests.accounts.factories import PASSWORD, make_key_row, make_user
from tests.accounts.test_access_tokens import sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def told():
    """What was told, as (user_id, credential)."""
    heard = []

    def hear(sender, user_id, credential, **_kwargs):
        heard.append((user_id, credential))

    credentials_revoked.connect(hear)
    yield heard
    credentials_revoked.disconnect(hear)


def test_a_revoked_key_is_told_once_and_only_after_the_commit(told, django_capture_on_commit_callbacks):
    user = make_user()
    key, secret = make_key_row(user)
    credential = caller_from_bearer(secret).credential
    with django_capture_on_commit_callbacks(execute=True):
        revoke_key(key)
        revoke_key(key)
        assert told == []
    assert told == [(user.pk, credential)]


def test_signing_out_tells_of_that_session_alone(client, told, django_capture_on_commit_callbacks):
    user = make_user()
    client.force_login(user)
    credential = caller_from_session(client.session).credential
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/logout/")
    assert told == [(user.pk, credential)]


def test_an_app_that_signs_out_tells_of_its_tokens(client, told, django_capture_on_commit_callbacks):
    user = make_user(password=PASSWORD)
    tokens = sign_in(client, user)
    credential = caller_from_bearer(tokens["access_token"]).credential
    with django_capture_on_commit_callbacks(execute=True):
        client.delete("/_allauth/app/v1/auth/session", headers={"X-Session-Token": tokens["session_token"]})
    assert (user.pk, credential) in told


def test_a_suspended_account_is_told_of_as_a_whole(told, django_capture_on_commit_callbacks):
    user = make_user()
    with django_capture_on_commit_callbacks(execute=True):
        user.is_active = False
        user.save()
        user.save()
    assert told == [(user.pk, None)]


def test_saving_an_account_that_stays_active_tells_nothing(told, django_capture_on_commit_callbacks):
    user = make_user()
    with django_capture_on_commit_callbacks(execute=True):
        user.name = "Ann"
        user.save()
    assert told == []


def test_a_changed_password_is_told_of(client, told, django_capture_on_commit_callbacks):
    user = make_user(password=PASSWORD)
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    new = "another-" + PASSWORD
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert (user.pk, None) in told


def test_the_name_of_a_session_does_not_reveal_it(client):
    client.force_login(make_user())
    assert client.session.session_key not in caller_from_session(client.session).credential
