"""Keeps for the next turn what is known at an answer's end: token counts and the history.

It happens after the reader has had the end, and what fails of it costs the next turn a little time, nothing else.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import structlog

from conversations.context.material import Said
from conversations.models import Message
from conversations.services import token_counts
from conversations.services.answering import Answer
from conversations.services.attempts import Attempt
from conversations.services.context_cache import ContextCache, Place
from conversations.services.outcomes import Outcome
from conversations.services.reading import history_after
from foundation.database import DATABASE_UNREACHABLE, in_database
from inference.tgi.errors import ModelServerError
from inference.token_counting import TokenCounter, counter_of

log = structlog.get_logger(__name__)

_COUNT_SECONDS = 5.0
_KEPT = (Message.Status.COMPLETE, Message.Status.CANCELLED)


async def keep_for_the_next_turn(answer: Answer, outcome: Outcome, cache: ContextCache) -> None:
    """Count what has no count yet, store the counts, and keep the history up to and with the answer.

    Of an answer that was stopped before its question was read nothing is known that could be kept.
    """
    attempt, material = answer.reply.attempt, answer.material
    if outcome.status not in _KEPT or not material.path:
        return
    written = Said(attempt.generation_id, "assistant", outcome.content)
    history = history_after(material, outcome.record, written)
    counter = counter_of(answer.replica) if answer.replica and answer.fitted else None
    if counter is not None:
        counts = await _store_counts(answer, outcome, counter, written)
        history = replace(history, said=tuple(_counted(said, counter.name, counts) for said in history.said))
    await cache.keep(_place_after(attempt), history)


def _place_after(attempt: Attempt) -> Place:
    return Place(attempt.user_id, attempt.conversation_id, attempt.generation_id, attempt.opening.context_version)


async def _store_counts(answer: Answer, outcome: Outcome, counter: TokenCounter, written: Said) -> Mapping[UUID, int]:
    """Count the prompt's parts and the answer exactly, and store what was counted."""
    attempt, fitted = answer.reply.attempt, answer.fitted
    assert fitted is not None
    counts: dict[UUID, int] = {}
    try:
        async with asyncio.timeout(_COUNT_SECONDS):
            record = await fitted.counted(outcome.tokens_in)
            (tokens,) = await counter.count_texts([written.content])
        counts = {**fitted.new_counts, **({written.message_id: tokens} if counter.is_exact else {})}
        await in_database(
            token_counts.store,
            counts,
            counter.name,
            conversation_id=attempt.conversation_id,
            generation_id=attempt.generation_id,
            record=None if record == outcome.record else record,
        )
    except (ModelServerError, TimeoutError, *DATABASE_UNREACHABLE) as error:
        log.warning("counts_not_stored", error=type(error).__name__)
    return counts


def _counted(said: Said, tokenizer: str, counts: Mapping[UUID, int]) -> Said:
    if said.message_id not in counts:
        return said
    return replace(said, token_counts={**said.token_counts, tokenizer: counts[said.message_id]})
