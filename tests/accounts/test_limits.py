"""`/v1/limits`."""

import pytest
from django.utils.dateparse import parse_datetime

from accounts.exceptions import AccountsError
from accounts.models import ModelLimit, Tier
from foundation.ids import new_id
from tests.accounts.factories import bearer, make_key, make_tier, make_user
from tests.accounts.quotas.conftest import make_user_with, reserve, settle

pytestmark = pytest.mark.django_db

WHAT = ("limit", "remaining", "reset")
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


TIERS = {
    "free": {"requests": 40, "tokens_per_day": 100_000, "tokens_per_minute": 60_000, "concurrent_generations": 8},
    "plus": {"requests": 400, "tokens_per_day": 1_000_000, "tokens_per_minute": 200_000, "concurrent_generations": 20},
    "enterprise": {"requests": 10_000},
}


@pytest.mark.parametrize("tier", TIERS)
def test_each_tier_that_a_site_begins_with_tells_its_own(client, tier):
    user = make_user(tier=tier)
    reserve(user, 100)
    response, told = limits(client, user)
    assert {name: each["limit"] for (name, _), each in told.items()} == TIERS[tier]
    for each in told.values():
        assert each["remaining"] == each["limit"] - each["used"]
        assert (each["resets_at"] is None) == (each["name"] == "concurrent_generations")
    assert ("x-ratelimit-limit-tokens" in response) == ("tokens_per_day" in TIERS[tier])


REFUSALS = {
    "requests_exceeded": {"requests": 1},
    "concurrency_exceeded": {"concurrent_generations": 1},
    "tokens_exceeded": {"tokens_per_day": 150},
}


@pytest.mark.parametrize("code", REFUSALS)
def test_every_refusal_tells_both_requests_and_tokens(code):
    user = make_user_with(**{"requests": 9, "tokens_per_day": 1000, **REFUSALS[code]})
    reserve(user, 100)
    with pytest.raises(AccountsError) as refused:
        reserve(user, 100)
    headers = refused.value.headers
    assert refused.value.code == code
    assert set(headers) == {f"x-ratelimit-{what}-{of}" for what in WHAT for of in ("requests", "tokens")}
    assert headers["x-ratelimit-remaining-tokens"] == ("50" if code == "tokens_exceeded" else "900")
    assert refused.value.retry_after_seconds > 0


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
