"""`/v1/limits`."""

import pytest
from django.utils.dateparse import parse_datetime

from accounts.models import ModelLimit, Tier
from foundation.ids import new_id
from tests.accounts.factories import bearer, make_key, make_tier, make_user
from tests.accounts.quotas.conftest import reserve, settle

pytestmark = pytest.mark.django_db

NAMES = ["requests", "tokens_per_day", "tokens_per_minute", "concurrent_generations"]


def limits(client, user):
    response = client.get("/v1/limits", headers=bearer(make_key(user)))
    return response, {(each["name"], each["model"]): each for each in response.json()["data"]}


def test_it_tells_what_the_tier_allows_and_what_is_left(client):
    user = make_user()
    for _ in range(3):
        reserve(user, 1000)
    response, told = limits(client, user)
    assert response.json()["tier"] == "free"
    assert [name for name, _ in told] == NAMES
    requests = told["requests", None]
    assert parse_datetime(requests.pop("resets_at")) is not None
    assert requests == {
        "name": "requests", "model": None, "limit": 40, "used": 3, "remaining": 37, "window_seconds": 10800
    }  # fmt: skip
    assert (told["tokens_per_day", None]["used"], told["tokens_per_day", None]["remaining"]) == (3000, 97_000)
    assert told["tokens_per_day", None]["resets_at"].endswith("T00:00:00Z")
    assert (told["tokens_per_minute", None]["used"], told["tokens_per_minute", None]["window_seconds"]) == (3000, 60)
    places = told["concurrent_generations", None]
    assert (places["used"], places["remaining"], places["resets_at"], places["window_seconds"]) == (3, 5, None, None)


def test_its_headers_are_those_of_openais_clients(client):
    user = make_user()
    reserve(user, 1000)
    response, _ = limits(client, user)
    assert response["x-ratelimit-limit-requests"] == "40"
    assert response["x-ratelimit-remaining-requests"] == "39"
    assert response["x-ratelimit-reset-requests"] in {"3h0m0s", "2h59m59s", "2h59m58s"}
    assert response["x-ratelimit-limit-tokens"] == "100000"
    assert response["x-ratelimit-remaining-tokens"] == "99000"
    assert response["x-ratelimit-reset-tokens"].endswith("s")


def test_what_ended_has_used_what_it_used(client):
    user, generation_id = make_user(), new_id()
    reserve(user, 1000, generation_id=generation_id)
    settle(user, generation_id, 30, 12)
    told = limits(client, user)[1]
    assert [told[name, None]["used"] for name in NAMES] == [1, 42, 42, 0]


def test_a_limit_that_the_tier_leaves_open_is_not_told(client):
    response, told = limits(client, make_user(tier=make_tier(requests=5).pk))
    assert [name for name, _ in told] == ["requests"]
    assert "x-ratelimit-limit-tokens" not in response


def test_a_models_own_limits_are_told_beside_the_others(client):
    ModelLimit.objects.create(tier=Tier.objects.get(pk="free"), model="dear", requests_per_window=2, tokens_per_day=500)
    user = make_user()
    reserve(user, 200, model="dear")
    told = limits(client, user)[1]
    assert (told["requests", "dear"]["used"], told["requests", "dear"]["remaining"]) == (1, 1)
    assert (told["tokens_per_day", "dear"]["used"], told["tokens_per_day", "dear"]["limit"]) == (200, 500)
    assert (told["requests", None]["used"], told["tokens_per_day", None]["used"]) == (0, 0)
    assert told["concurrent_generations", None]["used"] == 1


def test_it_tells_only_the_callers_own(client):
    alice, bob = make_user(), make_user()
    reserve(alice, 100)
    assert {each["used"] for each in limits(client, bob)[1].values()} == {0}


def test_a_key_that_may_only_chat_does_not_see_them(client):
    response = client.get("/v1/limits", headers=bearer(make_key(make_user(), ["chat"])))
    assert response.status_code == 403
