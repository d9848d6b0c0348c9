"""A worker's writes to the database. Each names its attempt, so a worker that was given up changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts import usage
from conversations.context.budget import MOST_HISTORY_BYTES, TEMPLATE_BYTES_PER_MESSAGE
from conversations.models import Generation, Message
from conversations.services.outcomes import Outcome
from inference.jobs import Job, estimated_tokens
from inference.messages import ChatMessage, Role

MOST_ATTEMPTS = 5
"""A generation that has taken this many workers down with it is given up."""
_SWEEP_COUNT = 500
_FORGOTTEN_SECONDS = 2

_CLAIM = """
WITH RECURSIVE claimed AS (
  UPDATE conversations_generation
  SET status = 'running', attempt = attempt + 1, started_at = COALESCE(started_at, now()),
      lease_expires_at = now() + make_interval(secs => %(lease)s)
  WHERE message_id = %(id)s AND status = 'queued' RETURNING *
), shown AS (
  UPDATE conversations_message SET status = 'running' WHERE id IN (SELECT message_id FROM claimed)
), path AS (
  SELECT message.id, message.conversation_id, message.parent_id, message.role, message.content, 0 AS bytes
  FROM claimed JOIN conversations_message message ON message.id = claimed.message_id
  UNION ALL
  SELECT message.id, message.conversation_id, message.parent_id, message.role, message.content,
         path.bytes + octet_length(message.content) + %(bytes_per_message)s
  FROM path JOIN conversations_message message
  ON message.id = path.parent_id AND message.conversation_id = path.conversation_id
  WHERE path.bytes < %(most_bytes)s
)
SELECT path.bytes, path.id, path.parent_id, path.role, path.content,
       claimed.attempt, claimed.user_id, claimed.conversation_id, claimed.model, claimed.options,
       claimed.cancel_requested_at IS NOT NULL, claimed.is_background,
       claimed.attempt = 1 AND claimed.deadline < now(), claimed.first_token_at, conversation.instructions,
       claimed.notices,
       (SELECT before.replica FROM conversations_message question
        JOIN conversations_generation before ON before.message_id = question.parent_id
        WHERE question.id = path.parent_id AND claimed.message_id IS NOT NULL)
FROM path LEFT JOIN claimed ON claimed.message_id = path.id
LEFT JOIN conversations_conversation conversation ON conversation.id = claimed.conversation_id
"""
"""Answers with the path from the empty answer up to the first message; what was claimed stands in the first row only.

The path is walked by the parents, so that a tree of many branches costs no more than the branch that counts, and ends
where the prompt would outgrow every window. Each message counts a few bytes of its own: a damaged tree's circle ends,
and `_once_each` leaves its rounds out.
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

_FINISH = """
WITH conversation AS (
  SELECT id FROM conversations_conversation WHERE id = %(conversation_id)s FOR NO KEY UPDATE
), ended AS (
  UPDATE conversations_generation generation
  SET status = %(status)s, finish_reason = %(finish_reason)s, error_code = %(error_code)s,
      error_message = %(error_message)s, first_token_at = %(first_token_at)s, finished_at = %(now)s,
      lease_expires_at = NULL, replica = %(replica)s, model_version = %(model_version)s
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
), recorded AS (RECORD_ENDED)
SELECT count(*) FROM ended
""".replace("RECORD_ENDED", usage.RECORD_ENDED)
"""Locks the conversation first, as whoever deletes it does: in another order the two could lock each other out."""

_REQUEUE = """
WITH lost AS (
  UPDATE conversations_generation SET status = 'queued', lease_expires_at = NULL, enqueued_at = now()
  WHERE message_id IN (
    SELECT message_id FROM conversations_generation
    WHERE status = 'running' AND lease_expires_at < now() LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING *
), forgotten AS (
  UPDATE conversations_generation SET enqueued_at = now()
  WHERE message_id IN (
    SELECT message_id FROM conversations_generation
    WHERE status = 'queued' AND enqueued_at < now() - make_interval(secs => %(forgotten)s)
    ORDER BY message_id LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING *
)
SELECT message_id, priority_class, model, user_id,
  CASE WHEN attempt = 0 THEN deadline ELSE now() + make_interval(secs => %(patience)s) END,
  (options ->> 'max_tokens')::int
FROM (SELECT * FROM lost UNION ALL SELECT * FROM forgotten) AS waiting
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One worker's try at one generation. `number` fences its writes.

    `path` leads from the first message to the question; `is_path_cut` says that its beginning was too long to be read.
    """

    generation_id: UUID
    number: int
    user_id: UUID
    conversation_id: UUID
    model: str
    options: dict[str, Any]
    instructions: str
    notices: tuple[str, ...]
    path: tuple[ChatMessage, ...]
    is_path_cut: bool
    hint_replica: str
    """The replica that wrote the answer before the question: it may hold the beginning of the prompt."""
    checkpointed_text: str
    first_token_at: datetime | None
    is_cancelled: bool
    is_background: bool
    is_overdue: bool


def claim(generation_id: UUID, *, most_bytes: int = MOST_HISTORY_BYTES) -> Attempt | None:
    """Take a queued generation, and read what led to it; `None` for one that is not queued (any more).

    Messages are read from the newest back until they have `most_bytes`.
    """
    parameters = {
        "id": generation_id,
        "lease": settings.LEASE_SECONDS,
        "most_bytes": most_bytes,
        "bytes_per_message": TEMPLATE_BYTES_PER_MESSAGE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        rows = cursor.fetchall()
    if not rows:
        return None
    path = _once_each(sorted(rows, key=itemgetter(0)))
    (
        _, _, _, _, content, number, user_id, conversation_id, model, options, is_cancelled, is_background,
        is_overdue, first_token_at, instructions, notices, hint_replica,
    ) = path[0]  # fmt: skip
    is_path_cut = path[-1][2] is not None
    return Attempt(
        generation_id=generation_id,
        number=number,
        user_id=user_id,
        conversation_id=conversation_id,
        model=model,
        options=orjson.loads(options),
        instructions=instructions,
        notices=tuple(orjson.loads(notices)),
        path=_said([(role, text) for _, _, _, role, text, *_ in reversed(path[1:])], is_cut=is_path_cut),
        is_path_cut=is_path_cut,
        hint_replica=hint_replica or "",
        checkpointed_text=content,
        first_token_at=first_token_at,
        is_cancelled=is_cancelled,
        is_background=is_background,
        is_overdue=is_overdue,
    )


def _once_each(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows up to the first message that comes a second time."""
    seen: set[UUID] = set()
    for place, (_, message_id, *_) in enumerate(rows):
        if message_id in seen:
            return rows[:place]
        seen.add(message_id)
    return rows


def _said(path: list[tuple[Role, str]], *, is_cut: bool) -> tuple[ChatMessage, ...]:
    """Return the messages of a path; one whose beginning is missing begins with the first question that there is."""
    first = next((i for i, (role, _) in enumerate(path) if role == "user"), 0) if is_cut else 0
    return tuple(ChatMessage(role, content) for role, content in path[first:])


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
    """End a generation: answer, reason, token counts and usage in one statement. Say whether it was ours to end."""
    parameters: dict[str, Any] = {
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
        "error_code": outcome.error_code,
        "error_message": outcome.error_message,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, parameters)
        return bool(cursor.fetchone()[0])


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
        generation = Generation.objects.only("priority_class").get(pk=attempt.generation_id)
    return Job(
        attempt.generation_id,
        generation.priority_class,
        attempt.model,
        attempt.user_id,
        timezone.now() + timedelta(seconds=settings.QUEUE_DEADLINE_SECONDS),
        _estimate(attempt.options.get("max_tokens")),
    )


def lost_jobs() -> list[Job]:
    """Return what no worker holds: running ones whose lease ran out, queued ones that the queue may have forgotten."""
    with connection.cursor() as cursor:
        patience = settings.QUEUE_DEADLINE_SECONDS
        cursor.execute(_REQUEUE, {"count": _SWEEP_COUNT, "forgotten": _FORGOTTEN_SECONDS, "patience": patience})
        return [
            Job(generation_id, priority_class, model, user_id, deadline, _estimate(most_tokens))
            for generation_id, priority_class, model, user_id, deadline, most_tokens in cursor.fetchall()
        ]


def _estimate(most_tokens: int | None) -> int:
    return estimated_tokens(0, most_tokens or settings.MAX_ANSWER_TOKENS)
