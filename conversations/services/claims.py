"""Takes a queued generation for this worker, with what its prompt needs."""

from operator import itemgetter
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection

from conversations.context.budget import MOST_HISTORY_BYTES, TEMPLATE_BYTES_PER_MESSAGE
from conversations.services.attempts import Attempt
from inference.messages import ChatMessage, Role

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
