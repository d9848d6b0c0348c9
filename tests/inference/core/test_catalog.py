"""The fleet as `MODEL_FLEET` names it: read as it is meant, or refused with the part that is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.catalog import ServerKind, parse_fleet
from inference.exceptions import InvalidFleet, UnknownModel

FLEET = "small=http://a:1,http://b:2;large=https://c/path/, openai+http://d:4/v1 ; v1.5_x-y=http://e"


def test_models_and_replicas_are_read_in_order():
    catalog = parse_fleet(FLEET)
    assert [model.alias for model in catalog.models] == ["small", "large", "v1.5_x-y"]
    assert [replica.url for replica in catalog.replicas()] == [
        "http://a:1",
        "http://b:2",
        "https://c/path",
        "http://d:4/v1",
        "http://e",
    ]
    assert [replica.kind for replica in catalog.models[1].replicas] == [ServerKind.TGI, ServerKind.OPENAI_COMPATIBLE]


@pytest.mark.parametrize("wanted", [None, "", "auto"])
def test_without_a_wish_the_default_answers(wanted):
    assert parse_fleet(FLEET).find(wanted).alias == "small"
    assert parse_fleet(FLEET, "large").find(wanted).alias == "large"


def test_a_replica_of_two_models_is_one_replica():
    assert len(parse_fleet("a=http://x;b=http://x,http://y").replicas()) == 2


def test_an_address_that_is_named_twice_is_one_replica():
    assert len(parse_fleet("a=http://x,http://x/").models[0].versions[0].replicas) == 1


def test_an_address_says_what_its_replica_is_given():
    first, second = parse_fleet("a=http://x:1#permits=8&weight=2.5,openai+http://y/v1#permits=1").replicas()
    assert (first.url, first.permits, first.weight) == ("http://x:1", 8, 2.5)
    assert (second.url, second.permits, second.weight) == ("http://y/v1", 1, 1.0)


def test_an_unknown_model_is_refused_with_those_there_are():
    with pytest.raises(UnknownModel) as refused:
        parse_fleet(FLEET).find("huge")
    assert refused.value.details == {"allowed": ["auto", "small", "large", "v1.5_x-y"]}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "names no model"),
        (" ; ", "names no model"),
        ("http://a", "'http://a'"),
        ("=http://a", "'=http://a'"),
        ("auto=http://a", "'auto=http://a'"),
        ("sm all=http://a", "'sm all=http://a'"),
        ("small=", "small has no address"),
        ("small=,", "small has no address"),
        ("small=a:1", "'a:1'"),
        ("small=ftp://a", "'ftp://a'"),
        ("small=http://", "'http://'"),
        ("small=http://a:x", "'http://a:x'"),
        ("small=http://a:99999", "'http://a:99999'"),
        ("small=http://[::1", "'http://[::1'"),
        ("small=http://a#permits=0", "'http://a#permits=0'"),
        ("small=http://a#permits=many", "'http://a#permits=many'"),
        ("small=http://a#weight=nan", "'http://a#weight=nan'"),
        ("small=http://a#weight=-1", "'http://a#weight=-1'"),
        ("small=http://a#weight=1001", "'http://a#weight=1001'"),
        ("small=http://a#permit=1", "'http://a#permit=1'"),
        ("small=http://a#permits", "'http://a#permits'"),
        ("small=http://a;small=http://b", "small more than once"),
        ("small=http://a;large=openai+http://a", "'http://a' both with and without 'openai+'"),
        (f"{'x' * 101}=http://a", "xxx"),
        (f"small=http://{'a' * 200}", "is not an address"),
        ("small=http://a b", "'http://a b'"),
    ],
)
def test_a_faulty_part_is_named(text, part):
    with pytest.raises(InvalidFleet) as refused:
        parse_fleet(text)
    assert part in refused.value.message


def test_a_default_that_is_no_model_is_refused():
    with pytest.raises(InvalidFleet, match="'huge'"):
        parse_fleet(FLEET, "huge")


@given(st.text(st.sampled_from("ab=:/,;.[]@ http"), max_size=40))
def test_whatever_is_written_is_read_or_refused(text):
    try:
        catalog = parse_fleet(text)
    except InvalidFleet:
        return
    assert all(model.replicas for model in catalog.models)
