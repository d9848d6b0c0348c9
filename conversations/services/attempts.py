"""A worker's writes to the database. Each names its attempt, so a worker that was given up changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts import usage
from conversations.services.outcomes import Outcome
from conversations.services.reading import Opening

MOST_ATTEMPTS = 5
"""A generation that has taken this many workers down with it is given up."""

_CHECKPOINT = """
WITH live AS (
  SELECT * FROM unnest(%(ids)s::uuid[], %(attempts)s::int[], %(texts)s::text[], %(first_tokens)s::timestamptz[])
  AS t(id, attempt, text, first_token_at)
), ours AS (
  SELECT generation.message_id, live.first_token_at FROM conversations_generation generation
  JOIN live ON generation.message_id = live.id AND generation.attempt = live.attempt
  WHERE generation.status = 'running' ORDER BY generation.message_id FOR NO KEY UPDATE OF generation
), renewed AS (
  UPDATE conversations_generation generation
  SET lease_expires_at = now() + make_interval(secs => %(lease)s), first_token_at = ours.first_token_at
  FROM ours WHERE generation.message_id = ours.message_id
  RETURNING generation.message_id, generation.cancel_requested_at IS NOT NULL
    OR EXISTS (SELECT FROM accounts_user owner WHERE owner.id = generation.user_id AND NOT owner.is_active)
    AS is_cancelled
), saved AS (
  UPDATE conversations_message message SET content = live.text
  FROM live JOIN renewed ON renewed.message_id = live.id
  WHERE message.id = live.id AND live.text IS NOT NULL
)
SELECT message_id, is_cancelled FROM renewed
"""
"""Locks in the order of the ids, as everybody who locks several generations does: none can wait for the other.

A suspended account's answers are stopped here too, should the word of it be lost.
"""

_FINISH = """
WITH conversation AS (
  SELECT id FROM conversations_conversation WHERE id = %(conversation_id)s FOR NO KEY UPDATE
), ended AS (
  UPDATE conversations_generation generation
  SET status = %(status)s, finish_reason = %(finish_reason)s, error_code = %(error_code)s,
      error_message = %(error_message)s, first_token_at = %(first_token_at)s, finished_at = %(now)s,
      lease_expires_at = NULL, replica = %(replica)s, model_version = %(model_version)s, context = %(context)s::jsonb
  FROM conversation
  WHERE generation.message_id = %(generation_id)s AND generation.attempt = %(number)s
    AND generation.status = 'running' AND generation.conversation_id = conversation.id
  RETURNING generation.message_id AS generation_id, generation.user_id, generation.conversation_id, generation.model
), shown AS (
  UPDATE conversations_message message
  SET content = %(content)s, status = %(status)s, finish_reason = %(finish_reason)s,
      tokens_in = %(tokens_in)s, tokens_cached = %(tokens_cached)s, tokens_out = %(tokens_out)s
  FROM ended WHERE message.id = ended.generation_id
), touched AS (
  UPDATE conversations_conversation conversation SET updated_at = %(now)s
  FROM ended WHERE conversation.id = ended.conversation_id
), SETTLE_ENDED
SELECT count(*) FROM ended
""".replace("SETTLE_ENDED", usage.SETTLE_ENDED)
"""Locks the conversation first, as whoever deletes it does: in another order the two could lock each other out."""


_IS_DELETED = "SELECT NOT EXISTS (SELECT FROM conversations_generation WHERE message_id = %(generation_id)s)"

_SETTLE_DELETED = """
WITH ended AS (
  SELECT generation_id, user_id, %(conversation_id)s::uuid AS conversation_id, model FROM accounts_tokenreservation
  WHERE generation_id = %(generation_id)s
    AND NOT EXISTS (SELECT FROM conversations_generation WHERE message_id = %(generation_id)s)
  FOR UPDATE
), SETTLE_ENDED
SELECT count(*) FROM settled
""".replace("SETTLE_ENDED", usage.SETTLE_ENDED)
"""What was decoded is paid, also where nobody wants to read it any more."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One worker's try at one generation. `number` fences its writes."""

    generation_id: UUID
    number: int
    user_id: UUID
    conversation_id: UUID
    model: str
    options: dict[str, Any]
    notices: tuple[str, ...]
    opening: Opening
    hint_replica: str
    """The replica that wrote the answer before the question: it may hold the beginning of the prompt."""
    checkpointed_text: str
    first_token_at: datetime | None
    is_cancelled: bool
    is_background: bool
    is_overdue: bool
    is_unnamed: bool
    """Whether the conversation has neither a title of its user's nor one that a model was asked for."""


@dataclass(frozen=True, slots=True)
class LiveText:
    """What a checkpoint saves of one attempt; `text` is `None` where nothing new was written."""

    generation_id: UUID
    attempt: int
    text: str | None
    first_token_at: datetime | None = None


def checkpoint(live: Sequence[LiveText]) -> dict[UUID, bool]:
    """Save running texts and renew their leases, all in one statement.

    Return, for each generation that is still this worker's, whether it is to stop.
    """
    parameters = {
        "ids": [each.generation_id for each in live],
        "attempts": [each.attempt for each in live],
        "texts": [each.text for each in live],
        "first_tokens": [each.first_token_at for each in live],
        "lease": settings.LEASE_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CHECKPOINT, parameters)
        return dict(cursor.fetchall())


def finish(attempt: Attempt, outcome: Outcome) -> bool:
    """End a generation: answer, reason, token counts and usage in one statement. Say whether it was ours to end."""
    return _did(_FINISH, _parameters(attempt, outcome))


def is_deleted(attempt: Attempt) -> bool:
    """Say whether the generation is gone with its conversation."""
    return _did(_IS_DELETED, {"generation_id": attempt.generation_id})


def settle_deleted(attempt: Attempt, outcome: Outcome) -> bool:
    """Settle a generation that is gone with its conversation. Say whether it was the first time: no other counts."""
    return _did(_SETTLE_DELETED, _parameters(attempt, outcome))


def _did(statement: str, parameters: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return bool(cursor.fetchone()[0])


def _parameters(attempt: Attempt, outcome: Outcome) -> dict[str, Any]:
    return {
        "generation_id": attempt.generation_id,
        "number": attempt.number,
        "conversation_id": attempt.conversation_id,
        "now": timezone.now(),
        "status": outcome.status,
        "finish_reason": outcome.finish_reason,
        "content": outcome.content,
        "tokens_in": outcome.tokens_in,
        "tokens_cached": outcome.tokens_cached,
        "tokens_out": outcome.tokens_out,
        "first_token_at": outcome.first_token_at,
        "replica": outcome.replica,
        "model_version": outcome.model_version,
        "context": orjson.dumps(outcome.record.as_json()).decode() if outcome.record else None,
        "error_code": outcome.error_code,
        "error_message": outcome.error_message,
        "cost": outcome.cost,
    }
