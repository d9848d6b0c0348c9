"""Which model answers."""

import json
from decimal import Decimal

import pytest

from accounts.exceptions import ModelNotInTier
from accounts.models import Tier
from conversations.models import Generation, Message
from conversations.models_on_offer import (
    alias_to_use,
    forget_reports,
    models_on_offer,
    most_answer_tokens,
    window_tokens,
)
from conversations.services import messages
from conversations.services.continuing import continue_answer
from conversations.services.messages import NewMessage
from inference.catalog import Capabilities
from inference.exceptions import UnknownModel
from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion, Replica, VersionWeight
from inference.stored_catalog import forget_catalog
from tests.accounts.factories import bearer, make_key, make_user
from tests.inference.fleet import reports

ALL = Tier(name="all")
LARGE, SMALL = "http://127.0.0.1:8101", "http://127.0.0.1:8102"


@pytest.fixture(autouse=True)
def fleet(settings, no_stored_fleet):
    settings.MODEL_FLEET = f"large={LARGE};small={SMALL}"
    settings.DEFAULT_MODEL = ""


def report(url, **facts):
    """The workers tell something new, and it is read at once."""
    reports.report(url, **facts)
    forget_reports()


@pytest.mark.parametrize("wanted", [None, "", "auto"])
def test_the_default_answers_whoever_names_no_model(wanted):
    assert alias_to_use(wanted, ALL) == "large"
    report(LARGE, is_healthy=True)
    assert alias_to_use(wanted, ALL) == "large"


def test_another_model_stands_in_while_the_default_is_on_its_way():
    report(LARGE, is_healthy=False)
    report(SMALL, is_healthy=True)
    assert alias_to_use(None, ALL) == "small"
    assert alias_to_use("large", ALL) == "large", "who names a model gets it, and waits"


def test_the_default_is_waited_for_where_no_model_is_there():
    report(LARGE, is_healthy=False)
    report(SMALL, is_healthy=False)
    assert alias_to_use(None, ALL) == "large"


def test_an_unknown_model_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownModel) as refused:
        alias_to_use("gigantic", ALL)
    assert refused.value.details == {"allowed": ["auto", "large", "small"]}


def test_a_tier_has_only_the_models_that_it_names():
    few = Tier(name="few", allowed_models=["small"])
    assert [(model.alias, model.is_default) for model in models_on_offer(few)] == [("small", True)]
    assert [alias_to_use(wanted, few) for wanted in (None, "auto", "small")] == ["small"] * 3
    with pytest.raises(ModelNotInTier) as refused:
        alias_to_use("large", few)
    assert refused.value.details == {"allowed": ["auto", "small"]}
    with pytest.raises(ModelNotInTier):
        alias_to_use(None, Tier(name="none", allowed_models=["gone"]))


def test_what_is_known_of_a_model_comes_from_the_workers_reports():
    report(LARGE, is_healthy=True, model_id="Org/Large", max_total_tokens=8192)
    large, small = models_on_offer(ALL)
    assert (large.is_ready, large.context_tokens, large.served_model) == (True, 8192, "Org/Large")
    assert (small.is_ready, small.context_tokens, small.served_model) == (False, None, None)


def test_a_model_promises_what_each_of_its_versions_can_keep():
    apply_fleet(f"large={LARGE}")
    facts = {
        "context_tokens": 4096,
        "max_answer_tokens": 800,
        "has_tools": True,
        "has_vision": True,
        "price_out": "0.6",
    }
    ModelVersion.objects.filter(name="large").update(**facts)
    canary = ModelVersion.objects.create(name="next", context_tokens=9000, max_answer_tokens=500, has_tools=True)
    Replica.objects.create(version=canary, url=SMALL)
    share = VersionWeight.objects.create(alias=ModelAlias.objects.get(name="large"), version=canary, weight=5)
    forget_catalog()
    report(LARGE, is_healthy=True, max_total_tokens=8192)
    [large] = models_on_offer(ALL)
    assert (large.context_tokens, large.max_answer_tokens) == (4096, 500)
    assert large.capabilities == Capabilities(tools=True)
    assert large.prices.tokens_out == Decimal("0.6")
    assert (most_answer_tokens("large"), window_tokens()("large")) == (500, 4096)

    VersionWeight.objects.filter(pk=share.pk).update(weight=0)
    forget_catalog()
    assert most_answer_tokens("large") == 800, "what gets no conversation limits none"


def test_a_server_with_a_smaller_window_than_its_version_says_limits_the_model():
    apply_fleet(f"large={LARGE}")
    ModelVersion.objects.update(context_tokens=9000)
    report(LARGE, is_healthy=True, max_total_tokens=8192)
    assert window_tokens()("large") == 8192
    assert most_answer_tokens("large") is None


def test_the_api_tells_what_a_model_can_do_and_what_it_costs(client):
    apply_fleet(f"large={LARGE};small={SMALL}")
    ModelVersion.objects.filter(name="large").update(has_tools=True, max_answer_tokens=800, price_in="1.5")
    key = make_key(make_user())
    large, small = client.get("/v1/models", headers=bearer(key)).json()["data"]
    assert large["capabilities"] == {"tools": True, "vision": False, "reasoning": False}
    assert large["prices"] == {"tokens_in": "1.5000", "tokens_cached": "0.0000", "tokens_out": "0.0000"}
    assert (large["max_answer_tokens"], small["max_answer_tokens"]) == (800, None)


def test_whoever_wants_a_model_that_the_tier_lacks_is_refused_everywhere(client):
    apply_fleet(f"large={LARGE};small={SMALL}")
    Tier.objects.filter(pk="free").update(allowed_models=["small"])
    headers = bearer(make_key(make_user()))

    def refusal(method, path, body):
        answer = client.generic(method, path, json.dumps(body), content_type="application/json", headers=headers)
        return answer.status_code, answer.json().get("error", {}).get("code")

    shown = client.get("/v1/models", headers=headers).json()["data"]
    assert [model["id"] for model in shown] == ["small"]
    made = client.post("/v1/conversations", {"model": "small"}, content_type="application/json", headers=headers)
    path = f"/v1/conversations/{made.json()['conversation_id']}"
    refused = (403, "model_not_in_tier")
    assert refusal("POST", "/v1/conversations", {"model": "large"}) == refused
    assert refusal("PATCH", path, {"model": "large"}) == refused
    assert refusal("POST", f"{path}/messages", {"content": "Hello", "model": "large"}) == refused
    assert Message.objects.count() == 0


def test_another_answer_and_one_that_goes_on_are_refused_by_a_model_that_the_tier_has_no_longer():
    apply_fleet(f"large={LARGE};small={SMALL}")
    alice = make_user()
    sent = messages.send(user=alice, conversation_id=None, message=NewMessage("Hello", model="large"))
    Generation.objects.update(status="cancelled")
    Message.objects.filter(pk=sent.answer.pk).update(status="cancelled", finish_reason="cancelled", content="Well")
    alice.tier.allowed_models = ["small"]
    with pytest.raises(ModelNotInTier):
        messages.regenerate(user=alice, message_id=sent.answer.pk)
    with pytest.raises(ModelNotInTier):
        continue_answer(user=alice, message_id=sent.answer.pk)
    again = messages.regenerate(user=alice, message_id=sent.answer.pk, model="small")
    assert again.generation.model == "small"


def test_a_stranger_who_wants_an_unknown_model_is_told_which_there_are(client):
    apply_fleet(f"large={LARGE};small={SMALL}")
    answer = client.post(
        "/v1/conversations", {"model": "huge"}, content_type="application/json", headers=bearer(make_key(make_user()))
    )
    assert answer.status_code == 404
    assert answer.json()["error"]["details"] == {"allowed": ["auto", "large", "small"]}
