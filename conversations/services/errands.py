"""Errands' rows: asked for once, attempted by one worker at a time, given back, and brought back when lost.

Each write of a worker names its attempt, so that one that was given up changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from conversations.models import Conversation, Errand
from conversations.models_on_offer import background_alias
from conversations.services import generations
from foundation.ids import new_id
from inference.exceptions import UnknownModel
from inference.jobs import BACKGROUND, Job, estimated_tokens
from inference.messages import ChatMessage

log = structlog.get_logger(__name__)

MOST_FAILURES = 3
"""An errand of which so many attempts came to nothing has failed."""
MOST_REQUESTS = 3
"""So often a summary is asked for that fails."""

_REQUEST = """
WITH conversation AS (
  SELECT id, user_id FROM conversations_conversation WHERE id = %(conversation_id)s FOR KEY SHARE
)
INSERT INTO conversations_errand AS errand
  (id, kind, conversation_id, message_id, user_id, model, prompt, details, max_tokens, status, attempt, failures,
   requests, text, created_at, enqueued_at, deadline)
SELECT %(id)s, %(kind)s, conversation.id, message.id, conversation.user_id, %(model)s, %(prompt)s::jsonb,
  %(details)s::jsonb, %(max_tokens)s, 'queued', 0, 0, 1, '', now(), now(), %(deadline)s
FROM conversation JOIN conversations_message message
ON message.conversation_id = conversation.id AND message.id = %(message_id)s
ON CONFLICT THE_CONFLICT
RETURNING id
"""
"""Holds the conversation, so that whoever deletes it finds the errand, or this finds no conversation."""
_ONE_TITLE = "(conversation_id) WHERE kind = 'title' DO NOTHING"
_ONE_SUMMARY = """(message_id) WHERE kind = 'summary' DO UPDATE SET
  model = excluded.model, prompt = excluded.prompt, details = excluded.details, max_tokens = excluded.max_tokens,
  status = 'queued', failures = 0, requests = errand.requests + 1, enqueued_at = now(), deadline = excluded.deadline
WHERE errand.status = 'failed' AND errand.requests < %(most_requests)s"""
_REQUESTS = {
    Errand.Kind.TITLE: _REQUEST.replace("THE_CONFLICT", _ONE_TITLE),
    Errand.Kind.SUMMARY: _REQUEST.replace("THE_CONFLICT", _ONE_SUMMARY),
}

_CLAIM = """
UPDATE conversations_errand SET
  status = 'running', attempt = attempt + 1, lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE id = %(id)s AND status = 'queued'
RETURNING attempt, conversation_id, model, prompt, max_tokens, deadline < now()
"""

_RENEW = """
WITH ours AS (
  SELECT errand.id FROM conversations_errand errand
  JOIN unnest(%(ids)s::uuid[], %(numbers)s::int[]) AS live(id, number)
  ON errand.id = live.id AND errand.attempt = live.number
  WHERE errand.status = 'running' ORDER BY errand.id FOR NO KEY UPDATE OF errand
)
UPDATE conversations_errand errand SET lease_expires_at = now() + make_interval(secs => %(lease)s)
FROM ours WHERE errand.id = ours.id RETURNING errand.id
"""


@dataclass(frozen=True, slots=True)
class ErrandAttempt:
    """One worker's try at one errand. `number` fences its writes."""

    errand_id: UUID
    number: int
    conversation_id: UUID
    model: str
    prompt: tuple[ChatMessage, ...]
    max_tokens: int
    is_overdue: bool


def request(
    kind: Errand.Kind,
    *,
    conversation: Conversation,
    message_id: UUID,
    prompt: Sequence[ChatMessage],
    max_tokens: int,
    details: Mapping[str, Any] | None = None,
) -> Errand | None:
    """Have the small model write something in the background; its kind's `settle` gets the text.

    Return `None` where it was asked for before (a summary that failed is tried again, `MOST_REQUESTS` times at most),
    and where the conversation or the message is no more.
    """
    try:
        model = background_alias()
    except UnknownModel:
        log.warning("no_model_for_errands", conversation_id=str(conversation.pk))
        return None
    parameters: dict[str, Any] = {
        "id": new_id(),
        "kind": kind,
        "conversation_id": conversation.pk,
        "message_id": message_id,
        "model": model,
        "prompt": orjson.dumps([tuple(message) for message in prompt]).decode(),
        "details": orjson.dumps(dict(details or {})).decode(),
        "max_tokens": max_tokens,
        "deadline": timezone.now() + timedelta(seconds=settings.BACKGROUND_DEADLINE_SECONDS),
        "most_requests": MOST_REQUESTS,
    }
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_REQUESTS[kind], parameters)
            row = cursor.fetchone()
        if row is None:
            return None
        errand = Errand.objects.get(pk=row[0])
        transaction.on_commit(lambda: offer([errand]), robust=True)
    return errand


def offer(errands: Sequence[Errand]) -> None:
    """Give queued errands to the workers."""
    generations.enqueue([_job(errand) for errand in errands])


def _job(errand: Errand) -> Job:
    characters = sum(len(content) for _, content in errand.prompt)
    estimate = estimated_tokens(characters, errand.max_tokens)
    return Job(errand.pk, BACKGROUND, errand.model, errand.user_id, errand.deadline, estimate)


def claim(errand_id: UUID) -> ErrandAttempt | None:
    """Take a queued errand; `None` for one that is not queued (any more), or no errand at all."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"id": errand_id, "lease": settings.LEASE_SECONDS})
        row = cursor.fetchone()
    if row is None:
        return None
    number, conversation_id, model, prompt, max_tokens, is_overdue = row
    messages = tuple(ChatMessage(role, content) for role, content in orjson.loads(prompt))
    return ErrandAttempt(errand_id, number, conversation_id, model, messages, max_tokens, is_overdue)


def renew(attempts: Sequence[ErrandAttempt]) -> set[UUID]:
    """Renew the leases of running errands; return which are still this worker's."""
    parameters = {
        "ids": [each.errand_id for each in attempts],
        "numbers": [each.number for each in attempts],
        "lease": settings.LEASE_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, parameters)
        return {errand_id for (errand_id,) in cursor.fetchall()}


def finish(attempt: ErrandAttempt, text: str) -> bool:
    """Keep what was written; say whether it was ours to write."""
    return _leave(attempt, status=Errand.Status.WRITTEN, text=text)


def fail(attempt: ErrandAttempt, *, is_final: bool) -> bool:
    """End an attempt that came to nothing; say whether the errand has failed with it.

    If it has not, the sweep offers it again: not at once, since what is wrong may last.
    """
    with transaction.atomic():
        failures = Errand.objects.filter(pk=attempt.errand_id).values_list("failures", flat=True).first() or 0
        has_failed = is_final or failures + 1 >= MOST_FAILURES
        if has_failed:
            return _leave(attempt, status=Errand.Status.FAILED, failures=failures + 1, prompt=[])
        _leave(attempt, status=Errand.Status.QUEUED, failures=failures + 1)
        return False


def give_back(attempt: ErrandAttempt) -> None:
    """Offer a running errand again at once: it was interrupted, nothing is wrong with it."""
    if _leave(attempt, status=Errand.Status.QUEUED):
        offer(list(Errand.objects.filter(pk=attempt.errand_id)))


def _leave(attempt: ErrandAttempt, **changes: Any) -> bool:
    ours = Errand.objects.filter(pk=attempt.errand_id, attempt=attempt.number, status=Errand.Status.RUNNING)
    return bool(ours.update(lease_expires_at=None, enqueued_at=timezone.now(), **changes))
