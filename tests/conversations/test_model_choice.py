"""Which model answers."""

import orjson
import pytest

from conversations.models_on_offer import alias_to_use, models_on_offer
from foundation.redis import key, shared_client
from inference.exceptions import UnknownModel

LARGE, SMALL = "http://127.0.0.1:8101", "http://127.0.0.1:8102"


@pytest.fixture(autouse=True)
def fleet(settings, no_stored_fleet):
    settings.MODEL_FLEET = f"large={LARGE};small={SMALL}"
    settings.DEFAULT_MODEL = ""


def report(url, *, is_healthy, **facts):
    shared_client().hset(key(1, "fleet"), url, orjson.dumps({"is_healthy": is_healthy, **facts}))


@pytest.mark.parametrize("wanted", [None, "", "auto"])
def test_the_default_answers_whoever_names_no_model(wanted):
    assert alias_to_use(wanted) == "large"
    report(LARGE, is_healthy=True)
    assert alias_to_use(wanted) == "large"


def test_another_model_stands_in_while_the_default_is_on_its_way():
    report(LARGE, is_healthy=False)
    report(SMALL, is_healthy=True)
    assert alias_to_use(None) == "small"
    assert alias_to_use("large") == "large", "who names a model gets it, and waits"


def test_the_default_is_waited_for_where_no_model_is_there():
    report(LARGE, is_healthy=False)
    report(SMALL, is_healthy=False)
    assert alias_to_use(None) == "large"


def test_an_unknown_model_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownModel) as refused:
        alias_to_use("gigantic")
    assert refused.value.details == {"allowed": ["auto", "large", "small"]}


def test_what_is_known_of_a_model_comes_from_the_workers_reports():
    report(LARGE, is_healthy=True, model_id="Org/Large", max_total_tokens=8192)
    large, small = models_on_offer()
    assert (large.is_ready, large.context_tokens, large.served_model) == (True, 8192, "Org/Large")
    assert (small.is_ready, small.context_tokens, small.served_model) == (False, None, None)
