"""Gives generations back to the queue: those that a worker leaves, and those that nobody holds."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from conversations.models import Generation, Message
from conversations.services.attempts import Attempt
from inference.jobs import Job, estimated_tokens

_SWEEP_COUNT = 500
_FORGOTTEN_SECONDS = 2

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
