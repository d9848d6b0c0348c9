"""Keeps a prompt within the model's window."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from conversations.exceptions import ContentTooLong
from inference.messages import ChatMessage

type CountTokens = Callable[[Sequence[ChatMessage]], Awaitable[int]]

LEAST_ANSWER_TOKENS = 64
"""An answer gets at least this much room, however long the prompt."""
MOST_HISTORY_BYTES = 4 * 1024 * 1024
"""More of a conversation than this is never read."""
TEMPLATE_BYTES_PER_MESSAGE = 64
"""What a chat template puts around each message, at most."""
_MOST_BYTES_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent. `max_new_tokens` fits into the window beside it."""

    messages: tuple[ChatMessage, ...]
    max_new_tokens: int
    is_trimmed: bool


async def fit(
    messages: tuple[ChatMessage, ...], *, window_tokens: int | None, answer_tokens: int, count: CountTokens
) -> Prompt:
    """Drop the oldest exchanges until the prompt and an answer of `answer_tokens` fit into `window_tokens`.

    Instructions and the last message are never dropped; raise `ContentTooLong` where they alone do not fit. A token has
    at least one byte of UTF-8, so a prompt with few bytes needs no counting; a longer one is counted by the server.
    """
    if window_tokens is None or _most_tokens(messages) + answer_tokens <= window_tokens:
        return Prompt(messages, answer_tokens, is_trimmed=False)
    reserved = min(answer_tokens, max(LEAST_ANSWER_TOKENS, window_tokens // 4))
    head = messages[:1] if messages[0].role == "system" else ()
    history = messages[len(head) :]
    starts = [i for i, message in enumerate(history) if message.role == "user"]
    dropped = await _fewest_dropped(head, history, starts, window_tokens - reserved, count)
    kept = head + history[starts[dropped] :]
    used = await count(kept)
    if used > window_tokens - reserved:
        raise ContentTooLong(
            f"The message and the instructions have {used:,} tokens; {window_tokens - reserved:,} fit into this model.",
            param="content",
        )
    return Prompt(kept, min(answer_tokens, window_tokens - used), is_trimmed=dropped > 0)


def most_history_bytes(windows: Iterable[int | None]) -> int:
    """Return how much of a conversation is worth reading, where its prompt may go to any of these windows.

    More does not fit, unless tokens are longer than words; then the beginning is left out, and said to be.
    """
    known = [window or 0 for window in windows]
    if not known or not all(known):
        return MOST_HISTORY_BYTES
    return min(MOST_HISTORY_BYTES, max(known) * _MOST_BYTES_PER_TOKEN)


def _most_tokens(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.content.encode()) + TEMPLATE_BYTES_PER_MESSAGE for message in messages)


async def _fewest_dropped(
    head: tuple[ChatMessage, ...], history: tuple[ChatMessage, ...], starts: list[int], budget: int, count: CountTokens
) -> int:
    """Return how many exchanges must go, by bisection: at most all but the last."""
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        if await count(head + history[starts[middle] :]) <= budget:
            high = middle
        else:
            low = middle + 1
    return low
