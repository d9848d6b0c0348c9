"""Text is kept as it is, or changed only where it cannot be."""

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from foundation.text import is_storable, made_storable, truncated

any_text = st.text(st.characters(), max_size=80)
clusters = ["a", " ", "\n", "e\u0301", "🤗", "👩‍👩‍👧", "🇩🇪", "\u200d", "\u0301", "각", "\r\n"]
rich_text = st.lists(st.sampled_from(clusters), max_size=40).map("".join)


@given(any_text)
def test_text_is_storable_exactly_if_it_can_be_encoded_and_holds_no_nul(text):
    try:
        text.encode()
        can_be = "\0" not in text
    except UnicodeEncodeError:
        can_be = False
    assert is_storable(text) == can_be


@given(any_text)
def test_what_is_made_storable_is_and_keeps_every_other_character(text):
    made = made_storable(text)
    assert is_storable(made)
    assert len(made) == len(text)
    assert all(new == (old if is_storable(old) else "\ufffd") for old, new in zip(text, made, strict=True))


def test_storable_text_is_left_alone():
    odd = "\u2028\u0085\ufffe\uffff\U0010ffff 🤗\x01"
    assert made_storable(odd) == odd


@given(rich_text, st.integers(1, 30))
@example("👩‍👩‍👧" * 3, 6)
def test_text_is_cut_between_what_people_take_for_characters(text, most):
    cut = truncated(text, most)
    assert len(cut) <= most
    if len(text) <= most:
        assert cut == text
        return
    assert cut.endswith("…")
    kept = cut.removesuffix("…")
    assert text.startswith(kept)
    borders = {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}
    assert len(kept) in borders or text[len(kept)].isspace()
    assert kept == kept.rstrip()


def test_as_much_is_kept_as_fits():
    assert truncated("one two three", 8) == "one two…"
    assert truncated("one two three", 9) == "one two…"
    assert truncated("onetwothree", 7) == "onetwo…"


def test_a_character_that_does_not_fit_whole_is_left_out():
    assert truncated("ab👩‍👩‍👧cd", 5) == "ab…"
    assert truncated("👩‍👩‍👧", 3) == "…"
