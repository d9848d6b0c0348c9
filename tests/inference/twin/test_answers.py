import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.testing.answers import bounded, expected_answer, remaining, whole_answer
from inference.testing.directives import InvalidDirectiveError, parse_directive
from inference.testing.pieces import made_up_pieces, spans, split_into_pieces
from tests.inference.twin.conftest import chat_text, directive


def test_the_same_prompt_is_always_answered_alike_and_another_one_otherwise():
    assert expected_answer("Which way?") == expected_answer("Which way?")
    assert expected_answer("Which way?") != expected_answer("Which other way?")


@given(st.text(), st.integers(0, 300))
@settings(max_examples=50, deadline=None)
def test_a_made_up_answer_has_exactly_the_tokens_asked_for(prompt, token_count):
    assert len(made_up_pieces(prompt, token_count)) == token_count


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 1000))
@settings(deadline=None)
def test_the_first_pieces_of_an_answer_are_the_same_without_the_others(token_count, at_most, seed):
    whole = made_up_pieces(f"prompt {seed}", token_count)
    assert made_up_pieces(f"prompt {seed}", token_count, at_most) == whole[:at_most]


def test_made_up_answers_hold_characters_that_need_several_tokens():
    pieces = made_up_pieces("any", 400)
    assert "" in pieces
    assert {"🤗", "我"} <= set(pieces)


@given(st.text())
@settings(deadline=None)
def test_pieces_of_a_text_join_to_the_text(text):
    assert "".join(split_into_pieces(text)) == text
    assert all(text.encode()[start:stop].decode() == piece for piece, start, stop in spans(text))


def test_a_character_of_four_bytes_comes_after_two_empty_pieces():
    assert split_into_pieces("a🤗") == ["a", "", "", "🤗"]


def test_a_directive_gives_the_exact_text():
    assert expected_answer(directive(text="data: [DONE]\n\u2028")) == "data: [DONE]\n\u2028"


def test_a_directive_gives_the_exact_pieces():
    answer = whole_answer(directive(pieces=[" ", "\n", "\ud83c"]), 64)
    assert answer.pieces == (" ", "\n", "\ud83c")


def test_echo_answers_what_follows_the_directive():
    assert expected_answer(directive("say\nthis", echo=True)) == "say\nthis"


def test_a_message_without_a_directive_has_none():
    assert parse_directive("mail me @twin {}") == parse_directive("")


@pytest.mark.parametrize("line", ["@twin nonsense", '@twin {"tokenz": 3}', '@twin {"fault": {"kind": "no such"}}'])
def test_a_wrong_directive_is_refused_rather_than_ignored(line):
    with pytest.raises(InvalidDirectiveError):
        parse_directive(line)


@given(st.integers(0, 200), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_a_continuation_gives_the_rest_byte_for_byte(cut, seed):
    answer = whole_answer(f"prompt {seed}", 64)
    partial = answer.text[:cut].rstrip()
    assert partial + remaining(answer, partial).text == answer.text


def test_a_text_that_is_not_the_beginning_is_followed_by_the_whole_answer():
    answer = whole_answer("prompt", 64)
    assert remaining(answer, "Something else") == answer


def test_the_token_limit_cuts_and_says_length():
    answer = bounded(whole_answer("prompt", 64), 5, ())
    assert (len(answer.pieces), answer.finish, answer.has_eos) == (5, "length", False)


def test_an_end_of_sequence_on_the_last_permitted_token_counts_as_length():
    answer = bounded(whole_answer("prompt", 64), 65, ())
    assert (len(answer.pieces), answer.finish, answer.has_eos) == (64, "length", True)


def test_a_stop_string_stays_in_the_text():
    assert expected_answer(directive(text="one two three"), stop=[" two"]) == "one two"


async def test_a_prompt_without_a_directive_is_answered_with_its_lines_that_hold_what_is_to_be_repeated(twin, say):
    twin.change(repeats="fact:")
    prompt = "fact: one\nnothing\nUser: fact: two 🤗"
    assert chat_text(await say(prompt)) == "fact: one\nUser: fact: two 🤗"
    assert chat_text(await say(directive(prompt, text="scripted"))) == "scripted"
