"""A prompt never exceeds the model's window; what must be said is said, and no more is left out than needs be."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.budget import LEAST_ANSWER_TOKENS, MOST_HISTORY_BYTES, fit, most_history_bytes
from conversations.exceptions import ContentTooLong
from inference.messages import ChatMessage

TEMPLATE_TOKENS = 4


def tokens_of(messages):
    """Count as an exact server would: a token per two bytes, and a few for each message's frame."""
    return sum(TEMPLATE_TOKENS + (len(message.content.encode()) + 1) // 2 for message in messages)


async def count(messages):
    return tokens_of(messages)


def fitted(messages, **limits):
    return asyncio.run(fit(messages, count=count, **limits))


content = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=150)
exchange = st.tuples(content, content).map(
    lambda pair: (ChatMessage("user", pair[0]), ChatMessage("assistant", pair[1]))
)


@st.composite
def prompts(draw):
    """Instructions or none, some exchanges, the question, and perhaps the beginning of its answer."""
    head = (ChatMessage("system", draw(content)),) if draw(st.booleans()) else ()
    history = tuple(message for pair in draw(st.lists(exchange, max_size=8)) for message in pair)
    partial = (ChatMessage("assistant", draw(content)),) if draw(st.booleans()) else ()
    return head + history + (ChatMessage("user", draw(content)),) + partial


def candidates(messages):
    """Return every prompt that may be sent, the fullest first."""
    head = messages[:1] if messages[0].role == "system" else ()
    history = messages[len(head) :]
    return [head + history[at:] for at, message in enumerate(history) if message.role == "user"]


@given(prompts(), st.integers(100, 2000), st.integers(1, 1500))
def test_a_prompt_and_its_answer_fit_and_the_fewest_exchanges_are_left_out(messages, window_tokens, answer_tokens):
    reserved = min(answer_tokens, max(LEAST_ANSWER_TOKENS, window_tokens // 4))
    possible = [each for each in candidates(messages) if tokens_of(each) + reserved <= window_tokens]
    try:
        prompt = fitted(messages, window_tokens=window_tokens, answer_tokens=answer_tokens)
    except ContentTooLong:
        assert possible == []
        return
    assert prompt.messages == possible[0]
    assert prompt.is_trimmed == (prompt.messages != messages)
    assert tokens_of(prompt.messages) + prompt.max_new_tokens <= window_tokens
    assert min(answer_tokens, LEAST_ANSWER_TOKENS) <= prompt.max_new_tokens <= answer_tokens


@given(prompts(), st.integers(100, 2000))
def test_instructions_and_the_question_are_never_left_out(messages, window_tokens):
    try:
        prompt = fitted(messages, window_tokens=window_tokens, answer_tokens=200)
    except ContentTooLong:
        return
    last_turn = candidates(messages)[-1]
    assert prompt.messages[-len(last_turn) :] == last_turn or prompt.messages[0] == messages[0]
    assert [m for m in prompt.messages if m.role == "system"] == [m for m in messages if m.role == "system"]
    assert prompt.messages[-1] == messages[-1]


@given(prompts())
def test_without_a_known_window_nothing_is_left_out(messages):
    prompt = fitted(messages, window_tokens=None, answer_tokens=77)
    assert (prompt.messages, prompt.max_new_tokens, prompt.is_trimmed) == (messages, 77, False)


def test_what_surely_fits_is_not_counted():
    async def refuse(_messages):
        raise AssertionError

    messages = (ChatMessage("user", "short"),)
    assert asyncio.run(fit(messages, window_tokens=1000, answer_tokens=100, count=refuse)).messages == messages


def test_counting_is_by_bisection():
    counted = []

    async def count_and_note(messages):
        counted.append(messages)
        return tokens_of(messages)

    exchanges = [ChatMessage(role, "x" * 100) for _ in range(512) for role in ("user", "assistant")]
    messages = (*exchanges, ChatMessage("user", "now"))
    prompt = asyncio.run(fit(messages, window_tokens=1000, answer_tokens=100, count=count_and_note))
    assert prompt.is_trimmed
    assert len(counted) <= 12


def test_a_message_that_is_too_long_by_itself_is_refused_with_the_numbers():
    messages = (ChatMessage("system", "i" * 100), ChatMessage("user", "x" * 4000))
    with pytest.raises(ContentTooLong) as refused:
        fitted(messages, window_tokens=1000, answer_tokens=500)
    assert refused.value.param == "content"
    assert "2,058" in refused.value.message
    assert "750" in refused.value.message


def test_a_long_answer_is_shortened_before_history_is_left_out():
    messages = (ChatMessage("user", "x" * 800), ChatMessage("assistant", "y" * 400), ChatMessage("user", "z" * 100))
    prompt = fitted(messages, window_tokens=1000, answer_tokens=900)
    assert prompt.messages == messages
    assert prompt.max_new_tokens == 1000 - tokens_of(messages)


def test_as_much_is_read_as_may_fit_into_the_largest_window():
    assert most_history_bytes([1000, 4000]) == 16 * 4000
    assert most_history_bytes([10**9]) == MOST_HISTORY_BYTES


@pytest.mark.parametrize("windows", [[], [None], [1000, None]])
def test_where_a_window_is_unknown_as_much_is_read_as_ever_is(windows):
    assert most_history_bytes(windows) == MOST_HISTORY_BYTES
