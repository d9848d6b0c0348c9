"""`POST /v1/api-keys` takes what is documented, whatever else is tried."""

import pytest
from django.utils.dateparse import parse_datetime

from accounts.models import APIKey
from tests.conversations.api.errors import error_of


@pytest.mark.parametrize(
    "expires_at",
    [
        "9999-12-31T23:59:59.999999-12:00",
        "0001-01-01T00:00:00+14:00",
        "2020-01-01T00:00:00Z",
        "2040-13-01T00:00:00Z",
        "2040-01-01",
        "2040-01-01T00:00:00",
        "soon",
        "",
        "2040-01-01T00:00:00+99:00",
        "٢٠٤٠-01-01T00:00:00Z",
        "\x00",
        5,
        10**30,
        1.5,
        True,
        [],
        {},
    ],
)
def test_an_expiry_that_cannot_be_is_refused(dora, expires_at):
    error = error_of(dora.post("/v1/api-keys", {"scopes": ["read"], "expires_at": expires_at}), 422, "invalid_request")
    assert error["param"] == "expires_at"
    assert APIKey.objects.count() == 1


@pytest.mark.parametrize(
    "expires_at", ["2040-01-01T00:00:00Z", "2040-01-01T02:00:00+02:00", "9999-12-31T23:59:59Z", "2040-01-01t00:00:00z"]
)
def test_an_expiry_is_answered_in_utc(dora, expires_at):
    made = dora.post("/v1/api-keys", {"scopes": ["read"], "expires_at": expires_at})
    assert made.status_code == 201, made.text
    shown = made.json()["expires_at"]
    assert shown.endswith("Z")
    assert parse_datetime(shown) == parse_datetime(expires_at.upper())


@pytest.mark.parametrize(
    "scopes", [None, "read", [], ["READ"], ["read", "admin"], [["read"]], {"read": True}, [1], ["\x00"], ["read"] * 5]
)
def test_scopes_that_there_are_not_are_refused(dora, scopes):
    error = error_of(dora.post("/v1/api-keys", {"scopes": scopes}), 422, "invalid_request")
    assert error["param"] == "scopes"


@pytest.mark.parametrize("name", [None, 5, [], "n" * 101, "\x00"])
def test_a_name_that_cannot_be_kept_is_refused(dora, name):
    error = error_of(dora.post("/v1/api-keys", {"scopes": ["read"], "name": name}), 422, "invalid_request")
    assert error["param"] == "name"


@pytest.mark.parametrize("field", ["key", "digest", "prefix", "user", "last_used_at", "api_key_id", "revoked_at"])
def test_what_the_site_decides_is_not_taken_from_the_caller(dora, field):
    error = error_of(dora.post("/v1/api-keys", {"scopes": ["read"], field: "x"}), 422, "invalid_request")
    assert error["param"] == field
