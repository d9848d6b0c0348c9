"""A prompt is known by the hashes of its beginning."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.messages import ChatMessage
from inference.prefixes import BLOCK_BYTES, BLOCK_ENDS, MOST_BLOCKS, blocks_in, prefix_of

ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
# Surrogates too: a prompt may hold half an emoji that a client has cut.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=20).flatmap(
    lambda text: st.integers(1, 400).map(lambda times: text * times)
)
MESSAGES = st.lists(st.builds(ChatMessage, ROLES, TEXTS), max_size=6)


@given(MESSAGES, MESSAGES)
def test_the_prefix_of_a_turn_begins_that_of_the_next(said, more):
    before, after = prefix_of(said), prefix_of([*said, *more])
    assert after[: len(before)] == before


@given(TEXTS, TEXTS)
def test_an_answer_that_is_continued_keeps_its_prefix(text, more):
    before, after = prefix_of([ChatMessage("assistant", text)]), prefix_of([ChatMessage("assistant", text + more)])
    assert after[: len(before)] == before


def test_the_same_text_in_other_messages_is_another_prefix():
    text = "word " * 200
    whole = prefix_of([ChatMessage("user", text + text)])
    assert whole[0] != prefix_of([ChatMessage("user", text[:100]), ChatMessage("user", text[100:] + text)])[0]
    assert whole[0] != prefix_of([ChatMessage("assistant", text + text)])[0]
    assert whole[0] != prefix_of([ChatMessage("user", f"\ufffduser\ufffd{text}")])[0]


@pytest.mark.parametrize("position", [0, 600, 5_000, 30_000])
def test_what_differs_somewhere_differs_from_there_on(position):
    one = "a" * 40_000
    other = one[:position] + "b" + one[position + 1 :]
    first, second = prefix_of([ChatMessage("user", one)]), prefix_of([ChatMessage("user", other)])
    same = blocks_in(position)
    assert first[:same] == second[:same]
    assert not set(first[same:]) & set(second[same:])


def test_a_tail_shorter_than_a_block_does_not_count():
    assert prefix_of([ChatMessage("user", "a" * (BLOCK_BYTES - 7))]) == ()
    assert len(prefix_of([ChatMessage("user", "a" * (BLOCK_BYTES - 6))])) == 1


@pytest.mark.parametrize("length", [16_384, 16_385, 100_000])
def test_a_prompt_is_hashed_the_same_whatever_its_pieces(length):
    texts = ["é" * length, "é" * length]
    whole = prefix_of([ChatMessage("user", text) for text in texts])
    assert len(whole) == blocks_in(2 * (2 * length + len("user") + 2))
    assert whole == prefix_of([ChatMessage("user", text) for text in texts])


def test_the_longest_prompt_has_a_bounded_number_of_blocks_that_follow_closely():
    assert len(prefix_of([ChatMessage("user", "a" * (BLOCK_ENDS[-1] * 2))])) == MOST_BLOCKS
    assert blocks_in(800_000) < 60
    assert all(end - begin <= max(BLOCK_BYTES, begin / 8) for begin, end in pairwise(BLOCK_ENDS))
