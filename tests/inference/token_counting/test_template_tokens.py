"""What a chat template adds is never more than was measured, whatever is said."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.messages import ChatMessage
from inference.template_tokens import measure_template
from inference.tgi.errors import TemplateFailed, Unreachable
from inference.token_counting import upper_bound
from tests.inference.token_counting.tokenizers import TEMPLATES, count

BORDERS = st.sampled_from(
    ["", "\n", "\n\n\n", " ", "   ", "\t", "1", "[", "👩‍👩‍👧", "我", "\u0301", "'s", "</s>", "\u3000"]
)
TEXTS = st.one_of(
    st.text(min_size=1, max_size=40),
    st.sampled_from(["def f(x):\n    return x  # 42\n", "我们很好", "नमस्ते", "한국어", "🤗🤗", "naïve café", "    "]),
)
CONTENTS = st.builds("".join, st.tuples(BORDERS, TEXTS, BORDERS))


@st.composite
def conversations(draw):
    contents = draw(st.lists(CONTENTS, min_size=1, max_size=9).filter(lambda contents: len(contents) % 2))
    messages = [ChatMessage("assistant" if place % 2 else "user", text) for place, text in enumerate(contents)]
    system = draw(st.none() | CONTENTS)
    return ([ChatMessage("system", system)] if system else []) + messages


def counting(tokenizer, render):
    async def count_texts(texts):
        return [count(tokenizer, text) for text in texts]

    async def count_prompt(messages):
        return count(tokenizer, render(messages))

    return count_texts, count_prompt


@pytest.fixture(scope="session", params=TEMPLATES)
def template(request, tokenizer):
    render = TEMPLATES[request.param]
    return render, asyncio.run(measure_template(*counting(tokenizer, render)))


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=conversations())
def test_contents_and_template_together_are_never_fewer_than_the_prompt_has(tokenizer, template, messages):
    render, tokens = template
    own = sum(count(tokenizer, message.content) for message in messages)
    assert own + tokens.base + tokens.per_message * len(messages) >= count(tokenizer, render(messages))


@settings(deadline=None)
@given(text=st.text())
def test_a_text_has_at_most_its_upper_bound_of_tokens(tokenizer, text):
    assert count(tokenizer, text) <= upper_bound(text)


def test_characters_that_grow_when_normalised_are_bounded_too(tokenizer):
    assert count(tokenizer, "\U0001d160" * 9) <= upper_bound("\U0001d160" * 9)


def test_the_bound_is_close(tokenizer, template):
    render, tokens = template
    messages = [ChatMessage("assistant" if place % 2 else "user", "How are you?") for place in range(41)]
    own = sum(count(tokenizer, message.content) for message in messages)
    spare = own + tokens.base + tokens.per_message * 41 - count(tokenizer, render(messages))
    assert spare <= 41 * 6


async def test_a_template_without_system_messages_is_measured_without_them(tokenizer):
    count_texts, count_prompt = counting(tokenizer, TEMPLATES["chatml"])

    async def count_or_refuse(messages):
        if messages[0].role == "system":
            raise TemplateFailed("System role not supported")
        return await count_prompt(messages)

    tokens = await measure_template(count_texts, count_or_refuse)
    assert tokens.per_message > 2
    assert tokens.base > 10, "the instructions that the template adds itself"


async def test_a_template_that_refuses_everything_is_not_measured(tokenizer):
    async def refuse(_messages):
        raise TemplateFailed("no")

    with pytest.raises(TemplateFailed):
        await measure_template(counting(tokenizer, TEMPLATES["chatml"])[0], refuse)


async def test_a_server_that_is_away_says_nothing_of_its_template(tokenizer):
    async def fail(_messages):
        raise Unreachable("away")

    with pytest.raises(Unreachable):
        await measure_template(counting(tokenizer, TEMPLATES["chatml"])[0], fail)
