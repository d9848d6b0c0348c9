"""Which messages the next epoch of a rolling summary covers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from uuid import UUID

from conversations.context.plan import HEAD_SHARE
from conversations.context.record import Record
from inference.messages import Role

EPOCH_MESSAGES = 10
COMFORTABLE_PERCENT = 45
"""So much of the budget the newest messages have even after the next cut, beside all else that is kept."""
MOST_WAITING_PERCENT = 25
"""More of the budget than this does not wait for ten messages: in a small window few messages make a cut."""
_SUMMARY_PERCENT = 15
_LEAST_SUMMARY_TOKENS = 200
_MOST_SUMMARY_TOKENS = 1_500


@dataclass(frozen=True, slots=True)
class Measured:
    """A message of a path: how long it is in tokens, and in bytes as the summarising model would be shown it."""

    message_id: UUID
    role: Role
    tokens: int
    shown_bytes: int


def is_long(record: Record | None, tokens: int) -> bool:
    """Whether an epoch may be due after an answer, by what its model saw and how many tokens that and the answer have.

    It never says no where `next_epoch` would find one, and costs nothing.
    """
    if record is None or record.budget_tokens is None:
        return False
    return record.tail_from is not None or tokens * 100 > record.budget_tokens * COMFORTABLE_PERCENT


def summary_share(budget_tokens: int) -> int:
    """Return how many tokens a summary may have before it is condensed."""
    return min(_MOST_SUMMARY_TOKENS, max(_LEAST_SUMMARY_TOKENS, budget_tokens * _SUMMARY_PERCENT // 100))


def after_head(path: Sequence[Measured], budget_tokens: int) -> Sequence[Measured]:
    """Return a whole path without its first exchange, which prompts keep as it is, unless it is too large for that."""
    first = next(iter(_exchange_ends(path)), 0)
    if sum(message.tokens for message in path[:first]) * HEAD_SHARE > budget_tokens:
        return path
    return path[first:]


def next_epoch(
    uncovered: Sequence[Measured],
    *,
    budget_tokens: int,
    kept_from: UUID | None,
    failed: Collection[UUID] = (),
    most_bytes: int,
) -> Sequence[Measured]:
    """Return the oldest messages that no summary covers yet, about ten, up to an answer; nothing where none is due.

    They are due once ten of them, or many tokens, lie beyond the comfortable share of the budget, or once one was left
    out of a prompt, which held only what comes from `kept_from` on. The last exchange is never among them. Where an
    epoch up to an answer of `failed` was given up, a longer one is tried.
    """
    dropped = sum(message.message_id < kept_from for message in uncovered) if kept_from else 0
    beyond = max(dropped, _beyond(uncovered, budget_tokens * COMFORTABLE_PERCENT // 100))
    within = [end for end in _exchange_ends(uncovered)[:-1] if end <= beyond]
    if not within or not (dropped or _is_much(uncovered[:beyond], budget_tokens)):
        return ()
    sums = list(accumulate((message.shown_bytes for message in uncovered), initial=0))
    fitting = [end for end in within if sums[end] <= most_bytes] or within[:1]
    wanted = next((end for end in fitting if end >= EPOCH_MESSAGES), fitting[-1])
    end = next((each for each in within if each >= wanted and uncovered[each - 1].message_id not in failed), 0)
    return uncovered[:end]


def _is_much(messages: Sequence[Measured], budget_tokens: int) -> bool:
    tokens = sum(message.tokens for message in messages)
    return len(messages) >= EPOCH_MESSAGES or tokens * 100 >= budget_tokens * MOST_WAITING_PERCENT


def _beyond(messages: Sequence[Measured], comfortable_tokens: int) -> int:
    """Return how many of the oldest messages do not belong to the newest that have so many tokens."""
    newest = accumulate(message.tokens for message in reversed(messages))
    return len(messages) - sum(tokens <= comfortable_tokens for tokens in newest)


def _exchange_ends(messages: Sequence[Measured]) -> list[int]:
    """Return the places behind each answer that is followed by a question, or by nothing."""
    ends = [
        place
        for place, (message, following) in enumerate(pairwise(messages), start=1)
        if (message.role, following.role) == ("assistant", "user")
    ]
    return [*ends, len(messages)] if messages else ends
