"""Repair of a model's text, whitespace that a continuation repeats, and stop strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tgi.text import RepeatedWhitespace, StopStrings, TextRepair

PIECES = st.lists(st.text("ab \n", max_size=4), max_size=12)


def through(stage, pieces):
    return "".join(stage.feed(piece) for piece in pieces) + stage.end()


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\0b"], "a\ufffdb"),
        (["\ud83c\udf78"], "🍸"),
        (["x\ud83c", "\udf78y"], "x🍸y"),
        (["\ud83c", "", "\udf78"], "🍸"),
        (["\ud83c", "z"], "\ufffdz"),
        (["\udf78", "y"], "\ufffdy"),
        (["a\ud83c"], "a\ufffd"),
        (["\ud83c", "\ud83c", "\udf78"], "\ufffd🍸"),
        (["\u2028\u2029\x85\x0b\x0c\x1c\ufeff\u200b"], "\u2028\u2029\x85\x0b\x0c\x1c\ufeff\u200b"),
        (["é🍸終"], "é🍸終"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(pieces, text):
    assert through(TextRepair(), pieces) == text


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=8))
def test_repaired_text_can_always_be_stored_and_other_characters_stay(pieces):
    repaired = through(TextRepair(), pieces)
    assert "\0" not in repaired
    repaired.encode()
    joined = "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert repaired == joined.replace("\0", "\ufffd")


@pytest.mark.parametrize(
    ("partial", "pieces", "continuation"),
    [
        ("Hello ", [" world"], "world"),
        ("Hello ", ["world"], "world"),
        ("Hello", [" world"], " world"),
        ("A\n\n", ["\n\n", "B"], "B"),
        ("A\n\n", ["\n", "\n", "B"], "B"),
        ("A\n\n", ["\n\n\nB"], "\nB"),
        ("A\n", ["\n\nB"], "\nB"),
        ("A\n\n", ["\nB"], "B"),
        ("if x:\n    ", ["\n    ", "return"], "return"),
        ("if x:\n    ", ["\n        y"], "    y"),
        ("if x:\n    ", ["\n  y"], "\n  y"),
        ("A ", ["\n", "B"], "\nB"),
        ("A  ", [" "], ""),
        ("A ", [], ""),
        ("", ["  x"], "  x"),
        ("A\u2028", ["\u2028B"], "B"),
    ],
)
def test_whitespace_that_the_partial_answer_ends_with_is_not_written_twice(partial, pieces, continuation):
    assert through(RepeatedWhitespace(partial), pieces) == continuation


@given(partial=st.text("ab \n"), pieces=PIECES)
def test_a_continuation_loses_nothing_but_whitespace_at_its_beginning(partial, pieces):
    whole = "".join(pieces)
    kept = through(RepeatedWhitespace(partial), pieces)
    assert whole.endswith(kept)
    lost = whole[: len(whole) - len(kept)]
    assert partial.endswith(lost)
    assert not lost.strip()


def test_what_follows_the_first_word_of_a_continuation_is_not_held_back():
    stage = RepeatedWhitespace("A\n\n")
    assert stage.feed("\n") == ""
    assert stage.feed("B") == "B"
    assert stage.feed("\n") == "\n"


def cut_at_first(text, stops):
    starts = [start for stop in stops if stop and (start := text.find(stop)) >= 0]
    return text[: min(starts)] if starts else text


@given(pieces=PIECES, stops=st.lists(st.text("ab \n", max_size=4), max_size=3))
def test_text_ends_before_the_first_stop_string_however_it_is_split(pieces, stops):
    stage = StopStrings(stops)
    seen = ""
    for count, piece in enumerate(pieces, 1):
        seen += stage.feed(piece)
        so_far = "".join(pieces[:count])
        if stage.was_met:
            assert seen == cut_at_first(so_far, stops)
            return
        held = so_far[len(seen) :]
        assert so_far == seen + held
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
    assert seen + stage.end() == "".join(pieces)


def test_only_what_could_become_a_stop_string_is_held_back():
    stage = StopStrings(["</end>"])
    assert stage.feed("a <") == "a "
    assert stage.feed("b>") == "<b>"
    assert stage.feed("c</en") == "c"
    assert stage.feed("x>") == "</enx>"
    assert not stage.was_met
