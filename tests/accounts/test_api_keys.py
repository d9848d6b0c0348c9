"""`/v1/api-keys`: making, listing and revoking."""

import hashlib
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.api_keys import make_key as make_key_row
from accounts.exceptions import InvalidRequest
from accounts.models import APIKey
from tests.accounts.factories import bearer, make_key, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com")


@pytest.fixture
def headers(alice):
    return bearer(make_key(alice, ["account", "chat", "read"], name="first"))


def post(client, body, headers):
    return client.post("/v1/api-keys", body, content_type="application/json", headers=headers)


def error_of(response):
    return response.json()["error"]


def test_a_new_key_is_told_once_and_opens_the_api(client, headers):
    expires_at = timezone.now() + timedelta(days=30)
    body = {"name": "laptop", "scopes": ["read", "chat"], "expires_at": expires_at.isoformat()}
    response = post(client, body, headers)
    assert response.status_code == 201
    made = response.json()
    assert re.fullmatch(r"ck_[A-Za-z0-9_-]{43}", made["key"])
    assert made["key"].startswith(made["prefix"])
    assert (made["name"], made["scopes"]) == ("laptop", ["chat", "read"])
    assert made["expires_at"].endswith("Z")
    assert set(made) == {
        "api_key_id", "name", "prefix", "scopes", "expires_at", "last_used_at", "created_at", "key",
    }  # fmt: skip
    assert client.get("/v1/limits", headers=bearer(made["key"])).status_code == 200
    assert made["key"] not in client.get("/v1/api-keys", headers=headers).text


def test_only_a_digest_of_the_secret_is_stored(alice):
    key, secret = make_key_row(alice, "x", ["chat"])
    assert bytes(APIKey.objects.get(pk=key.pk).digest) == hashlib.sha256(secret.encode()).digest()
    stored = APIKey.objects.values().get(pk=key.pk)
    assert secret not in {str(value) for value in stored.values()}


def test_two_keys_never_share_a_secret(alice):
    assert len({make_key(alice) for _ in range(50)}) == 50


def test_keys_are_listed_newest_first_and_page_by_page(client, alice, headers):
    for number in range(4):
        make_key(alice, name=str(number))
    first = client.get("/v1/api-keys?limit=3", headers=headers).json()
    assert [key["name"] for key in first["data"]] == ["3", "2", "1"]
    make_key(alice, name="made between two pages")
    second = client.get(f"/v1/api-keys?limit=3&cursor={first['next_cursor']}", headers=headers).json()
    assert [key["name"] for key in second["data"]] == ["0", "first"]
    assert second["next_cursor"] is None


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=-1", "limit=²", "cursor=x", "cursor=é"])
def test_a_page_that_cannot_be_is_refused(client, headers, query):
    response = client.get(f"/v1/api-keys?{query}", headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (422, "invalid_request")
    assert error_of(response)["param"] == query.partition("=")[0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"scopes": "chat"}, "scopes"),
        ({"scopes": ["chat"], "nmae": "typo"}, "nmae"),
        ({"scopes": ["chat"], "name": "n" * 101}, "name"),
        ({"scopes": ["chat"], "name": "nul\x00"}, "name"),
        ({"scopes": ["chat"], "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"scopes": ["chat"], "expires_at": "soon"}, "expires_at"),
    ],
)
def test_a_faulty_request_names_the_field(client, headers, body, field):
    response = post(client, body, headers)
    assert (response.status_code, error_of(response)["code"]) == (422, "invalid_request")
    assert error_of(response)["param"] == field


@pytest.mark.parametrize("body", [[], '"text"', 7, None])
def test_a_body_that_is_no_object_is_refused(client, headers, body):
    response = post(client, body, headers)
    assert response.status_code == 422


def test_a_key_cannot_make_a_key_that_may_do_more_than_itself(client, headers):
    response = post(client, {"scopes": ["chat", "write"]}, headers)
    assert (response.status_code, error_of(response)["code"]) == (403, "scope_missing")
    assert "`write`" in error_of(response)["message"]
    assert APIKey.objects.count() == 1


def test_a_revoked_key_is_gone_from_the_list_and_opens_nothing(client, headers):
    made = post(client, {"scopes": ["read"]}, headers).json()
    address = f"/v1/api-keys/{made['api_key_id']}"
    assert client.delete(address, headers=headers).status_code == 204
    assert client.get("/v1/limits", headers=bearer(made["key"])).status_code == 401
    listed = client.get("/v1/api-keys", headers=headers).json()["data"]
    assert made["api_key_id"] not in [key["api_key_id"] for key in listed]
    assert client.delete(address, headers=headers).status_code == 404


def test_a_key_may_revoke_itself(client, alice):
    key, secret = make_key_row(alice, "", ["account"])
    assert client.delete(f"/v1/api-keys/{key.pk}", headers=bearer(secret)).status_code == 204
    assert client.get("/v1/api-keys", headers=bearer(secret)).status_code == 401


def test_a_key_with_no_scope_or_an_unknown_one_is_not_made(alice):
    for scopes in ([], ["chat", "root"]):
        with pytest.raises(InvalidRequest):
            make_key_row(alice, "", scopes)


class TestWhoMaySeeAKey:
    """The same calls as owner, stranger, nobody, and a suspended account."""

    @pytest.fixture
    def key(self, alice):
        return make_key_row(alice, "alice's own", ["chat"])[0]

    def call(self, client, who, alice, key):
        callers = {
            "owner": lambda: bearer(make_key(alice)),
            "stranger": lambda: bearer(make_key(make_user("charlie@example.com"))),
            "staff": lambda: bearer(make_key(make_user("staff@example.com", is_staff=True, is_superuser=True))),
            "nobody": dict,
            "suspended": lambda: bearer(make_key(make_user("sam@example.com", is_active=False))),
        }
        return client.delete(f"/v1/api-keys/{key.pk}", headers=callers[who]())

    @pytest.mark.parametrize(
        ("who", "status"), [("owner", 204), ("stranger", 404), ("staff", 404), ("nobody", 401), ("suspended", 403)]
    )
    def test_only_its_owner_may_revoke_a_key(self, client, alice, key, who, status):
        assert self.call(client, who, alice, key).status_code == status
        key.refresh_from_db()
        assert (key.revoked_at is not None) == (who == "owner")

    def test_a_strangers_session_does_not_see_it_either(self, client, key):
        client.force_login(make_user("charlie@example.com"))
        assert client.delete(f"/v1/api-keys/{key.pk}").status_code == 404
        assert client.get("/v1/api-keys").json()["data"] == []

    @pytest.mark.parametrize("spelling", ["upper", "braces", "nonsense"])
    def test_another_spelling_of_its_id_is_not_found(self, client, headers, key, spelling):
        spelled = {"upper": str(key.pk).upper(), "braces": f"{{{key.pk}}}", "nonsense": "%00"}[spelling]
        response = client.delete(f"/v1/api-keys/{spelled}", headers=headers)
        assert response.status_code == 404
        key.refresh_from_db()
        assert key.revoked_at is None
