"""A worker's writes to the database. Each names its attempt, so a worker that was given up changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts import usage
from conversations.models import Conversation, Generation, Message
from conversations.services.outcomes import Outcome
from inference.jobs import Job

MOST_ATTEMPTS = 5
"""A generation that has taken this many workers down with it is given up."""
_SWEEP_COUNT = 500
_FORGOTTEN_SECONDS = 2

_CLAIM = """
WITH claimed AS (
  UPDATE conversations_generation
  SET status = 'running', attempt = attempt + 1, started_at = COALESCE(started_at, now()),
      lease_expires_at = now() + make_interval(secs => %(lease)s)
  WHERE message_id = %(id)s AND status = 'queued' RETURNING *
), shown AS (
  UPDATE conversations_message SET status = 'running' WHERE id IN (SELECT message_id FROM claimed)
)
SELECT claimed.attempt, claimed.user_id, claimed.conversation_id, claimed.model, claimed.options,
       claimed.cancel_requested_at IS NOT NULL, claimed.is_background,
       claimed.attempt = 1 AND claimed.deadline < now(), claimed.first_token_at,
       message.parent_id, message.content, conversation.instructions
FROM claimed JOIN conversations_message message ON message.id = claimed.message_id
JOIN conversations_conversation conversation ON conversation.id = claimed.conversation_id
"""

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
  RETURNING generation.message_id, generation.cancel_requested_at IS NOT NULL AS is_cancelled
), saved AS (
  UPDATE conversations_message message SET content = live.text
  FROM live JOIN renewed ON renewed.message_id = live.id
  WHERE message.id = live.id AND live.text IS NOT NULL
)
SELECT message_id, is_cancelled FROM renewed
"""
"""Locks in the order of the ids, as everybody who locks several generations does: none can wait for the other."""

_REQUEUE = """
WITH lost AS (
  UPDATE conversations_generation SET status = 'queued', lease_expires_at = NULL, enqueued_at = now()
  WHERE message_id IN (
    SELECT message_id FROM conversations_generation
    WHERE status = 'running' AND lease_expires_at < now() LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING message_id, priority_class
), forgotten AS (
  UPDATE conversations_generation SET enqueued_at = now()
  WHERE message_id IN (
    SELECT message_id FROM conversations_generation
    WHERE status = 'queued' AND enqueued_at < now() - make_interval(secs => %(forgotten)s)
    ORDER BY message_id LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING message_id, priority_class
)
SELECT * FROM lost UNION ALL SELECT * FROM forgotten
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One worker's try at one generation. `number` fences its writes."""

    generation_id: UUID
    number: int
    user_id: UUID
    conversation_id: UUID
    question_id: UUID
    model: str
    options: dict[str, Any]
    instructions: str
    checkpointed_text: str
    first_token_at: datetime | None
    is_cancelled: bool
    is_background: bool
    is_overdue: bool


def claim(generation_id: UUID) -> Attempt | None:
    """Take a queued generation; `None` for one that is not queued (any more)."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"id": generation_id, "lease": settings.LEASE_SECONDS})
        row = cursor.fetchone()
    if row is None:
        return None
    (
        number, user_id, conversation_id, model, options, is_cancelled, is_background,
        is_overdue, first_token_at, question_id, content, instructions,
    ) = row  # fmt: skip
    return Attempt(
        generation_id=generation_id,
        number=number,
        user_id=user_id,
        conversation_id=conversation_id,
        question_id=question_id,
        model=model,
        options=orjson.loads(options),
        instructions=instructions,
        checkpointed_text=content,
        first_token_at=first_token_at,
        is_cancelled=is_cancelled,
        is_background=is_background,
        is_overdue=is_overdue,
    )


@dataclass(frozen=True, slots=True)
class LiveText:
    """What a checkpoint saves of one attempt; `text` is `None` where nothing new was written."""

    generation_id: UUID
    attempt: int
    text: str | None
    first_token_at: datetime | None = None


def checkpoint(live: Sequence[LiveText]) -> dict[UUID, bool]:
    """Save running texts and renew their leases, all in one statement.

    Return, for each generation that is still this worker's, whether its cancellation was asked for.
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
    """End a generation: answer, reason, token counts and usage in one transaction. Say whether it was ours to end."""
    now = timezone.now()
    with transaction.atomic():
        # The conversation first, as whoever deletes it does: in another order the two could lock each other out.
        Conversation.objects.filter(pk=attempt.conversation_id).update(updated_at=now)
        ours = Generation.objects.filter(
            pk=attempt.generation_id, attempt=attempt.number, status=Message.Status.RUNNING
        ).update(
            status=outcome.status,
            finish_reason=outcome.finish_reason,
            error_code=outcome.error_code,
            error_message=outcome.error_message,
            first_token_at=outcome.first_token_at,
            finished_at=now,
            lease_expires_at=None,
            replica=outcome.replica,
            model_version=outcome.model_version,
        )
        if not ours:
            transaction.set_rollback(True)
            return False
        Message.objects.filter(pk=attempt.generation_id).update(
            content=outcome.content,
            status=outcome.status,
            finish_reason=outcome.finish_reason,
            tokens_in=outcome.tokens_in,
            tokens_cached=outcome.tokens_cached,
            tokens_out=outcome.tokens_out,
        )
        usage.record(
            generation_id=attempt.generation_id,
            user_id=attempt.user_id,
            conversation_id=attempt.conversation_id,
            model=attempt.model,
            tokens_in=outcome.tokens_in,
            tokens_cached=outcome.tokens_cached,
            tokens_out=outcome.tokens_out,
        )
    return True


def hand_over(attempt: Attempt, text: str, *, first_token_at: datetime | None = None) -> Job | None:
    """Give a running generation back to the queue with the text so far."""
    with transaction.atomic():
        ours = Generation.objects.filter(
            pk=attempt.generation_id, attempt=attempt.number, status=Message.Status.RUNNING
        ).update(
            status=Message.Status.QUEUED,
            first_token_at=first_token_at,
            lease_expires_at=None,
            enqueued_at=timezone.now(),
        )
        if not ours:
            return None
        Message.objects.filter(pk=attempt.generation_id).update(content=text)
        priority_class = Generation.objects.values_list("priority_class", flat=True).get(pk=attempt.generation_id)
    return Job(attempt.generation_id, priority_class)


def lost_jobs() -> list[Job]:
    """Return what no worker holds: running ones whose lease ran out, queued ones that the queue may have forgotten."""
    with connection.cursor() as cursor:
        cursor.execute(_REQUEUE, {"count": _SWEEP_COUNT, "forgotten": _FORGOTTEN_SECONDS})
        return [Job(generation_id, priority_class) for generation_id, priority_class in cursor.fetchall()]
