"""Stopping generations, and giving them to the queue."""

import time
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import connection
from django.utils import timezone

from accounts import quotas, usage
from accounts.models import User
from conversations import queries
from conversations.broadcasts import broadcast_soon
from conversations.models import Generation, Message
from foundation.database import give_connection_back
from foundation.redis import REDIS_UNREACHABLE, shared_client
from inference import cancellation, metrics, queue, token_stream, tracing
from inference.jobs import Job

log = structlog.get_logger(__name__)

_WAIT_FOR_END_SECONDS = 2.0
_OVERDUE_SECONDS = 10
_MOST_GIVEN_UP = 500

_CANCEL = """
WITH marked AS (
  UPDATE conversations_generation SET
    cancel_requested_at = COALESCE(cancel_requested_at, now()),
    status = CASE WHEN status = 'queued' AND attempt = 0 THEN 'cancelled' ELSE status END,
    finish_reason = CASE WHEN status = 'queued' AND attempt = 0 THEN 'cancelled' ELSE finish_reason END,
    finished_at = CASE WHEN status = 'queued' AND attempt = 0 THEN now() ELSE finished_at END
  WHERE message_id = %(id)s AND status IN ('queued', 'running')
  RETURNING message_id AS generation_id, user_id, conversation_id, model, status
), ended AS (
  SELECT * FROM marked WHERE status = 'cancelled'
), shown AS (
  UPDATE conversations_message
  SET status = 'cancelled', finish_reason = 'cancelled', tokens_in = 0, tokens_cached = 0, tokens_out = 0
  WHERE id IN (SELECT generation_id FROM ended)
), SETTLE_ENDED
SELECT status, user_id FROM marked
""".replace("SETTLE_ENDED", usage.SETTLE_ENDED)
"""Ends what no worker has begun, and flags what one has: in one UPDATE, because a claim may come in between two."""


_GIVE_UP = """
WITH ended AS (
  UPDATE conversations_generation
  SET status = 'failed', finish_reason = 'error', error_code = 'no_capacity', error_message = %(message)s,
    finished_at = now()
  WHERE message_id = %(id)s AND status = 'queued' AND attempt = 0
  RETURNING message_id AS generation_id, user_id, conversation_id, model
), shown AS (
  UPDATE conversations_message
  SET status = 'failed', finish_reason = 'error', tokens_in = 0, tokens_cached = 0, tokens_out = 0
  WHERE id IN (SELECT generation_id FROM ended)
), SETTLE_ENDED
SELECT user_id FROM ended
""".replace("SETTLE_ENDED", usage.SETTLE_ENDED)


def enqueue(jobs: Iterable[Job]) -> None:
    """Offer committed generations to the workers. If Redis is away, the sweeper does it later."""
    jobs = list(jobs)
    try:
        tracing.carry(shared_client(), [job.generation_id for job in jobs])
        queue.enqueue(shared_client(), jobs)
    except REDIS_UNREACHABLE as error:
        log.warning("enqueue_failed", error=type(error).__name__)


def cancel(*, user: User, generation_id: UUID) -> None:
    """Stop a generation of the user's, and wait a little until it has ended, so that the next message can follow it.

    What was written is kept. Does nothing to one that has ended. Raise `NotFound` for anybody else's.
    """
    generation = queries.generation_of(user.id, generation_id)
    if generation.status == Message.Status.RUNNING:
        # The worker need not wait for the flag's commit. Should this call be lost on the way, the flag is not.
        _announce(generation_id)
    if generation.status in Message.UNDER_WAY:
        request_cancel(generation_id)
        _wait_for_end(generation_id)


def request_cancel(generation_id: UUID) -> None:
    """Stop a generation, wherever it is. One that no worker has begun ends here and now."""
    with connection.cursor() as cursor:
        cursor.execute(_CANCEL, {"id": generation_id, **usage.NOTHING_USED})
        row = cursor.fetchone()
    if row is None:
        return
    status, user_id = row
    if status == Message.Status.CANCELLED:
        metrics.CANCELS.labels("queued").inc()
        _tell_end(user_id, generation_id)
    else:
        _announce(generation_id)


def stop_all_of(user_id: UUID) -> int:
    """Stop all of a user's generations, wherever they are; return how many there were."""
    under_way = [generation.pk for generation in queries.under_way_of(user_id)]
    for generation_id in under_way:
        request_cancel(generation_id)
    return len(under_way)


def under_way_among(generation_ids: Iterable[UUID]) -> set[UUID]:
    """Return those of the generations that have not ended."""
    return set(Generation.objects.filter(pk__in=list(generation_ids)).under_way().values_list("pk", flat=True))


def _announce(generation_id: UUID) -> None:
    try:
        cancellation.announce(shared_client(), generation_id)
    except REDIS_UNREACHABLE as error:
        log.warning("cancel_not_announced", generation_id=str(generation_id), error=type(error).__name__)


def give_up_overdue() -> int:
    """End what has waited past its deadline with no worker there to say so; return how many."""
    overdue = timezone.now() - timedelta(seconds=_OVERDUE_SECONDS)
    waiting = Generation.objects.filter(status=Message.Status.QUEUED, attempt=0, deadline__lt=overdue)
    ids = list(waiting.values_list("pk", flat=True)[:_MOST_GIVEN_UP])
    return sum(_give_up(each) for each in ids)


def _give_up(generation_id: UUID) -> bool:
    """End a generation that no worker has begun; say whether it was one."""
    message = "No model server was free in time. Try again."
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_UP, {"id": generation_id, "message": message, **usage.NOTHING_USED})
        row = cursor.fetchone()
    if row is None:
        return False
    _tell_end(row[0], generation_id)
    return True


def _tell_end(user_id: UUID, generation_id: UUID) -> None:
    """Give up the places of a generation that ended while it waited, and tell its readers."""
    quotas.settled(user_id, generation_id, tokens_used=0)
    broadcast_soon(user_id, "limits_changed")
    try:
        queue.remove(shared_client(), [generation_id])
        token_stream.announce_change(shared_client(), generation_id)
    except REDIS_UNREACHABLE as error:
        log.warning("end_not_announced", generation_id=str(generation_id), error=type(error).__name__)


def forget_streams(generation_ids: Iterable[UUID]) -> None:
    """Delete the token streams of generations that are no more."""
    try:
        token_stream.forget(shared_client(), generation_ids)
    except REDIS_UNREACHABLE as error:
        log.warning("streams_not_deleted", error=type(error).__name__)


def _wait_for_end(generation_id: UUID) -> None:
    deadline = time.monotonic() + _WAIT_FOR_END_SECONDS
    pause_seconds = 0.01
    while Generation.objects.filter(pk=generation_id).under_way().exists() and time.monotonic() < deadline:
        # Many may wait at once; those who have something to do need the connections.
        give_connection_back()
        time.sleep(pause_seconds)
        pause_seconds = min(0.1, pause_seconds * 1.5)
