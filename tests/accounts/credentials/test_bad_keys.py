"""What makes no key, by the API and on the page; and how many there may be."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import connections
from django.utils import timezone

from accounts.api_keys import make_key
from accounts.exceptions import InvalidRequest
from accounts.models import APIKey
from tests.accounts.factories import bearer, make_key_row, make_user

BAD = [
    {},
    {"scopes": []},
    {"scopes": None},
    {"scopes": "chat"},
    {"scopes": ["chat", "root"]},
    {"scopes": ["CHAT"]},
    {"scopes": ["chat"], "expires_at": "2020-01-01T00:00:00Z"},
    {"scopes": ["chat"], "expires_at": "2099-01-01T00:00:00"},
    {"scopes": ["chat"], "expires_at": "99999-01-01T00:00:00Z"},
    {"scopes": ["chat"], "expires_at": "tomorrow"},
    {"scopes": ["chat"], "expires_at": 4102444800},
    {"scopes": ["chat"], "expires_at": "0000-00-00T00:00:00Z"},
    {"scopes": ["chat"], "name": "a\u0000b"},
    {"scopes": ["chat"], "name": "a\u001bb"},
    {"scopes": ["chat"], "name": "a\nb"},
    {"scopes": ["chat"], "name": "\u202egnp"},
    {"scopes": ["chat"], "name": "a" * 101},
    {"scopes": ["chat"], "name": 7},
    {"scopes": ["chat"], "expires_at": None, "user": "somebody"},
]


@pytest.mark.django_db
@pytest.mark.parametrize("body", BAD, ids=repr)
def test_a_bad_key_is_refused_and_nothing_is_made(client, body):
    _, secret = make_key_row(make_user(), scopes=["account", "chat"])
    response = client.post("/v1/api-keys", body, content_type="application/json", headers=bearer(secret))
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_request")
    assert APIKey.objects.count() == 1


@pytest.mark.django_db
def test_an_expiry_without_a_zone_is_refused_here_too():
    with pytest.raises(InvalidRequest):
        make_key(make_user(), "x", ["chat"], datetime(2099, 1, 1))


@pytest.mark.django_db(transaction=True)
def test_nobody_gets_more_keys_than_there_may_be_also_at_once(settings):
    settings.MOST_API_KEYS = 3
    user = make_user()

    def make(_number):
        try:
            make_key(user, "x", ["chat"])
        except InvalidRequest:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(make, range(8))) == 3
    APIKey.objects.filter(pk=APIKey.objects.first().pk).update(revoked_at=timezone.now())
    assert make(0), "a revoked one makes room"


@pytest.mark.django_db
def test_a_key_is_made_on_the_page_and_shown_once(client):
    user = make_user()
    client.force_login(user)
    page = client.post("/account/api-keys", {"name": "laptop", "scopes": ["chat", "read"], "lifetime_days": "30"})
    key = APIKey.objects.get()
    secret = page.context["secret"]
    assert secret in page.text
    assert "no-store" in page["Cache-Control"]
    assert secret not in client.get("/account/api-keys").text
    assert key.prefix in client.get("/account/api-keys").text
    assert timedelta(days=29) < key.expires_at - timezone.now() < timedelta(days=31)
    assert client.get("/v1/limits", headers=bearer(secret)).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("fields", [{}, {"scopes": ["root"]}, {"scopes": ["chat"], "lifetime_days": "7000"}], ids=repr)
def test_the_page_refuses_what_the_api_refuses(client, fields):
    client.force_login(make_user())
    assert client.post("/account/api-keys", {"name": "x", **fields}).status_code == 422
    assert APIKey.objects.count() == 0


@pytest.mark.django_db
def test_a_key_is_revoked_on_the_page_after_a_question(client):
    user = make_user()
    key, secret = make_key_row(user)
    client.force_login(user)
    address = f"/account/api-keys/{key.pk}/revoke"
    assert "cannot be taken back" in client.get(address).text
    assert client.get("/v1/limits", headers=bearer(secret)).status_code == 200
    client.post(address)
    assert client.get("/v1/limits", headers=bearer(secret)).status_code == 401
    assert client.post(address).status_code == 404


@pytest.mark.django_db
def test_a_strangers_key_is_not_found(client):
    key, _ = make_key_row(make_user())
    client.force_login(make_user())
    assert client.get(f"/account/api-keys/{key.pk}/revoke").status_code == 404
    assert client.post(f"/account/api-keys/{key.pk}/revoke").status_code == 404
    assert APIKey.objects.get().revoked_at is None
