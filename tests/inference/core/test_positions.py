"""An event's id says how much of the text its reader has, so that any source can serve the rest."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.positions import BEGINNING, DONE_ORDINAL, FIRST_WORKER_ORDINAL, Position, text_from
from inference.token_stream import Batch, StreamedEvent, decode_batch, encode_batch, token_event

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
texts = st.lists(text.filter(bool), max_size=12)
position = st.builds(Position, st.integers(0, 2**40), st.integers(0, 2**16 - 1))


def events_of(parts):
    """Make the token events of a text that came in these parts."""
    events, reached = [], BEGINNING
    for part in parts:
        events.append(token_event(reached, part))
        reached = events[-1].position
    return events


@given(position)
def test_a_position_survives_the_way_through_a_clients_event_id(position):
    assert Position.from_event_id(position.event_id) == position


@given(position)
def test_a_position_survives_the_way_through_redis(position):
    assert Position.from_redis(position.redis_id) == position


@given(position, position)
def test_event_ids_are_in_the_order_of_the_positions(one, other):
    assert (one < other) == (one.event_id < other.event_id)


@pytest.mark.parametrize("event_id", [-1, -(2**70)])
def test_a_negative_event_id_is_the_beginning(event_id):
    assert Position.from_event_id(event_id) == BEGINNING


@given(texts)
def test_ids_grow_from_event_to_event(parts):
    ids = [event.position.event_id for event in events_of(parts)]
    assert all(earlier < later for earlier, later in pairwise([0, *ids]))


@given(text)
def test_the_rest_from_every_byte_begins_at_a_character(content):
    encoded = content.encode()
    for offset in range(len(encoded) + 1):
        rest = text_from(content, offset)
        assert content.endswith(rest)
        assert 0 <= len(rest.encode()) - (len(encoded) - offset) < 4


def test_the_rest_from_beyond_the_end_is_nothing():
    assert text_from("é", 3) == ""


@given(texts)
def test_from_any_event_on_the_stored_text_is_exactly_what_follows(parts):
    content = "".join(parts)
    for number, event in enumerate(events_of(parts), start=1):
        known = Position.from_event_id(event.position.event_id)
        assert text_from(content, known.offset) == "".join(parts[number:])


def test_events_without_text_stand_one_after_the_other_behind_it():
    first = Position(7, 0).next()
    assert Position(7, 0) < first < first.next() < Position(8, 0)


def test_a_workers_first_event_comes_after_those_of_the_web_tier():
    assert BEGINNING.next() == Position(0, FIRST_WORKER_ORDINAL)
    assert Position(0, 3).next() == Position(0, FIRST_WORKER_ORDINAL)


def test_nothing_stands_after_the_end():
    assert Position(7, DONE_ORDINAL).event_id + 1 == Position(8, 0).event_id


ODD = [
    "\n",
    "\r\n",
    "\u2028\u0085\x0b\x0c",
    "data: [DONE]\n\n",
    " ",
    '"\\',
    "🤗",
    "e\u0301",
    "\x7f\x01",
    "0-0 token {}",
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_text_survives_its_announcement(odd):
    batch = Batch(Position(3, 0), (token_event(Position(3, 0), odd), StreamedEvent(Position(9, 1), "notice", b"{}")))
    assert decode_batch(encode_batch(batch)) == batch
    assert decode_batch(encode_batch(batch)).events[0].text == odd


@given(texts.filter(bool))
def test_any_text_survives_its_announcement(parts):
    batch = Batch(BEGINNING, tuple(events_of(parts)))
    assert "".join(event.text for event in decode_batch(encode_batch(batch)).events) == "".join(parts)
