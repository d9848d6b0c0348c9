"""How many tokens a chat template adds to those of the messages, as an upper bound."""

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inference.messages import ChatMessage, Role
from inference.tgi.errors import InvalidRequest, TemplateFailed


@dataclass(frozen=True, slots=True)
class TemplateTokens:
    """A prompt of n messages has at most `base + n * per_message` tokens beside those of their contents."""

    base: int
    per_message: int


SUPPOSED = TemplateTokens(base=128, per_message=64)
"""Where nobody says. The longest known template opens with some 40 tokens, and puts some 10 around each message."""

_LENGTHS = (1, 3, 5)
# A content's first and last characters may join the template's own into other tokens, more or fewer.
_CONTENTS = ("a", "\n\nx\n\n", "  1. é ")
_MARGIN = 2
"""Tokens on top of what was measured, for borders that no probe has."""


type CountTexts = Callable[[Sequence[str]], Awaitable[list[int]]]
type CountPrompt = Callable[[Sequence[ChatMessage]], Awaitable[int]]


async def measure_template(count_texts: CountTexts, count_prompt: CountPrompt) -> TemplateTokens:
    """Return the bound, from prompts of one, three and five messages with and without a system message.

    What each further message adds is the most that any of them showed, and the base is what the rest needs, so that the
    bound holds for every probe; each message and the base get two tokens more. Raise `ModelServerError`.
    """
    measured: list[tuple[int, int]] = []
    per_message, refusal = 0, None
    for content in _CONTENTS:
        for system in ((), (ChatMessage("system", content),)):
            try:
                prompts = [(*system, *_turns(content, length)) for length in _LENGTHS]
                series = [await _overhead(prompt, count_texts, count_prompt) for prompt in prompts]
            except (TemplateFailed, InvalidRequest) as error:
                # Some templates know no system message.
                refusal = error
                continue
            per_message = max(per_message, *_growth(series))
            measured += series
    if refusal is not None and not measured:
        raise refusal
    base = max(overhead - messages * per_message for messages, overhead in measured)
    return TemplateTokens(max(0, base) + _MARGIN, per_message + _MARGIN)


async def _overhead(
    messages: Sequence[ChatMessage], count_texts: CountTexts, count_prompt: CountPrompt
) -> tuple[int, int]:
    """Return how many messages there are, and how many tokens are not their own."""
    own = sum(await count_texts([message.content for message in messages]))
    return len(messages), await count_prompt(messages) - own


def _turns(content: str, length: int) -> Iterator[ChatMessage]:
    for place in range(length):
        role: Role = "assistant" if place % 2 else "user"
        yield ChatMessage(role, content)


def _growth(series: Sequence[tuple[int, int]]) -> Iterator[int]:
    for (fewer, less), (more, overhead) in pairwise(series):
        yield math.ceil((overhead - less) / (more - fewer))
