"""An alias's conversations are shared out among its versions by weight."""

from collections import Counter

import pytest

from inference.catalog import Model, ModelVersion
from inference.router import versions_in_order

KEYS = [f"conversation-{number}".encode() for number in range(4_000)]


def model(**weights):
    return Model("small", tuple(ModelVersion(name, (), weight=weight) for name, weight in weights.items()))


def firsts(of):
    return [versions_in_order(of, key)[0].name for key in KEYS]


def test_every_version_is_named_once():
    of = model(old=90, new=10, newest=0)
    assert all(Counter(versions_in_order(of, key)) == Counter(of.versions) for key in KEYS[:50])


def test_shares_are_as_the_weights_say():
    counted = Counter(firsts(model(old=90, new=10)))
    assert counted["new"] == pytest.approx(400, rel=0.15)
    counted = Counter(firsts(model(a=100, b=200, c=100)))
    assert counted["b"] == pytest.approx(2_000, rel=0.1)
    assert counted["a"] == pytest.approx(1_000, rel=0.1)


def test_a_conversation_keeps_its_version_whatever_the_order_of_the_list():
    assert firsts(model(old=90, new=10)) == firsts(model(new=10, old=90))


def test_more_weight_moves_only_that_share_and_only_towards_it():
    before, after = firsts(model(old=90, new=10)), firsts(model(old=90, new=30))
    moved = [(was, now) for was, now in zip(before, after, strict=True) if was != now]
    assert set(moved) == {("old", "new")}
    assert len(moved) == pytest.approx(4_000 * (30 / 120 - 10 / 100), rel=0.15)


def test_a_version_that_goes_moves_only_its_own_conversations():
    before, after = firsts(model(a=50, b=50, c=50)), firsts(model(a=50, b=50))
    assert all(now == was for was, now in zip(before, after, strict=True) if was != "c")


def test_a_version_of_no_weight_comes_last_and_is_there_where_it_is_alone():
    assert set(firsts(model(old=0, new=1))) == {"new"}
    assert all(versions_in_order(model(old=0, new=1), key)[1].name == "old" for key in KEYS[:50])
    assert set(firsts(model(old=0))) == {"old"}
