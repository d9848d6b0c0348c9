"""`/v1/limits`."""

import pytest
from django.utils.dateparse import parse_datetime

from accounts import quotas
from tests.accounts.factories import bearer, make_key, make_user

pytestmark = pytest.mark.django_db


def test_it_tells_what_the_tier_allows_and_what_is_left(client):
    user = make_user()
    for _ in range(3):
        quotas.reserve_request(user.pk, user.tier)
    response = client.get("/v1/limits", headers=bearer(make_key(user)))
    body = response.json()
    assert body["tier"] == "free"
    [requests] = body["data"]
    assert parse_datetime(requests.pop("resets_at")) is not None
    assert requests == {"name": "requests", "limit": 40, "used": 3, "remaining": 37, "window_seconds": 10800}
    assert response["x-ratelimit-limit-requests"] == "40"
    assert response["x-ratelimit-remaining-requests"] == "37"


def test_it_tells_only_the_callers_own(client):
    alice, bob = make_user(), make_user()
    quotas.reserve_request(alice.pk, alice.tier)
    [requests] = client.get("/v1/limits", headers=bearer(make_key(bob))).json()["data"]
    assert requests["used"] == 0


def test_a_key_that_may_only_chat_does_not_see_them(client):
    response = client.get("/v1/limits", headers=bearer(make_key(make_user(), ["chat"])))
    assert response.status_code == 403
