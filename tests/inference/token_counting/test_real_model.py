"""Counts by the real local model's tokenizer and chat template."""

import random

import pytest

from inference.messages import ChatMessage
from inference.token_counting import counter_of, upper_bound
from tests.inference.local_server.conftest import running, server
from tests.inference.token_counting.states import state_of

__all__ = ["running", "server"]

pytestmark = pytest.mark.real_model

BORDERS = ["", "\n", "\n\n\n", "\n" * 9, " ", "    ", "\t", "1", "'s", "[", "\u3000", "\u0301", "👩‍👩‍👧", "<|im_end|>"]
TEXTS = [
    "Hello there",
    "def f(x):\n    return x  # 42\n",
    "我们很好",
    "नमस्ते",
    "한국어",
    "🤗🤗",
    "naïve café",
    "ﷺ\U0001d160",
]


def conversation(chance):
    def text():
        return chance.choice(BORDERS) + " ".join(chance.choices(TEXTS, k=3)) + chance.choice(BORDERS)

    turns = [ChatMessage("assistant" if place % 2 else "user", text()) for place in range(chance.choice([1, 3, 7]))]
    return [ChatMessage("system", text()), *turns] if chance.random() < 0.5 else turns


async def test_contents_and_template_bound_the_servers_own_count(server, session):
    counter = counter_of(state_of(server.url, session))
    template = await counter.template()
    chance = random.Random(7)
    for _ in range(60):
        messages = conversation(chance)
        contents = [message.content for message in messages]
        own = await counter.count_texts(contents)
        whole = await counter.count_prompt(messages)
        assert whole <= sum(own) + template.base + template.per_message * len(messages)
        assert all(count <= upper_bound(text) for count, text in zip(own, contents, strict=True))
    assert counter.is_exact


async def test_the_template_is_measured_closely(server, session):
    template = await counter_of(state_of(server.url, session)).template()
    # Qwen's puts five tokens around each message, and twenty before those that begin without instructions.
    assert template.per_message <= 5 + 3
    assert template.base <= 3 + 21 + 3
