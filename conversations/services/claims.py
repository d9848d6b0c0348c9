"""Takes a queued generation for this worker, with all that its prompt needs but the history."""

from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection

from conversations.context.material import Remembered, Said
from conversations.context.record import record_in
from conversations.services.attempts import Attempt
from conversations.services.reading import Opening

_MOST_STEPS = 16
"""How far above the question a record is looked for: as many answers in a row may have failed before they had one."""

_CLAIM = """
WITH RECURSIVE claimed AS (
  UPDATE conversations_generation
  SET status = 'running', attempt = attempt + 1, started_at = COALESCE(started_at, now()),
      lease_expires_at = now() + make_interval(secs => %(lease)s)
  WHERE message_id = %(id)s AND status = 'queued' RETURNING *
), shown AS (
  UPDATE conversations_message SET status = 'running' WHERE id IN (SELECT message_id FROM claimed)
), above AS (
  SELECT last.id, last.conversation_id, last.parent_id, before.context, before.replica, 1 AS steps
  FROM claimed JOIN conversations_message answer ON answer.id = claimed.message_id
  JOIN conversations_message last ON last.id = answer.parent_id AND last.conversation_id = answer.conversation_id
  LEFT JOIN conversations_generation before ON before.message_id = last.id
  UNION ALL
  SELECT message.id, message.conversation_id, message.parent_id, before.context, before.replica, above.steps + 1
  FROM above JOIN conversations_message message
  ON message.id = above.parent_id AND message.conversation_id = above.conversation_id
  LEFT JOIN conversations_generation before ON before.message_id = message.id
  WHERE above.context IS NULL AND above.steps < %(most_steps)s
)
SELECT claimed.attempt, claimed.user_id, claimed.conversation_id, claimed.model, claimed.options, claimed.notices,
  claimed.cancel_requested_at IS NOT NULL OR NOT owner.is_active AS is_cancelled, claimed.is_background,
  claimed.attempt = 1 AND claimed.deadline < now() AS is_overdue, claimed.first_token_at, answer.content AS text_so_far,
  last.id AS last_id, last.parent_id AS tip, last.role, last.content, last.token_counts,
  NOT (conversation.is_title_chosen OR conversation.temporary OR EXISTS (
    SELECT FROM conversations_errand errand WHERE errand.conversation_id = conversation.id AND errand.kind = 'title'
  )) AS is_unnamed,
  conversation.temporary, conversation.context_version, conversation.instructions,
  COALESCE(preference.instructions, '') AS user_instructions,
  (SELECT context FROM above WHERE context IS NOT NULL ORDER BY steps LIMIT 1) AS previous,
  (SELECT replica FROM above WHERE replica <> '' ORDER BY steps LIMIT 1) AS hint_replica,
  (SELECT jsonb_agg(jsonb_build_array(id, content)) FROM (
     SELECT memory.id, memory.content FROM conversations_memory memory
     WHERE memory.user_id = claimed.user_id AND memory.enabled AND memory.confirmed_at IS NOT NULL
       AND (memory.expires_at IS NULL OR memory.expires_at > now())
       AND NOT conversation.temporary AND COALESCE(preference.uses_memories, true)
     ORDER BY memory.id DESC LIMIT COALESCE(
       (SELECT tier.most_memories FROM accounts_tier tier WHERE tier.name = owner.tier_id), %(most_memories)s)
   ) newest) AS memories
FROM claimed JOIN conversations_message answer ON answer.id = claimed.message_id
JOIN accounts_user owner ON owner.id = claimed.user_id
JOIN conversations_conversation conversation ON conversation.id = claimed.conversation_id
LEFT JOIN conversations_message last ON last.id = answer.parent_id AND last.conversation_id = answer.conversation_id
LEFT JOIN conversations_preference preference ON preference.user_id = claimed.user_id
"""
"""What a suspended account asked for is stopped here: it may have been let in while the account was being suspended."""


def claim(generation_id: UUID) -> Attempt | None:
    """Take a queued generation, and read what its prompt begins from; `None` for one that is not queued (any more)."""
    parameters = {
        "id": generation_id,
        "lease": settings.LEASE_SECONDS,
        "most_steps": _MOST_STEPS,
        "most_memories": settings.MOST_MEMORIES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        row = cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
    return _attempt(generation_id, dict(zip(names, row, strict=True))) if row else None


def _attempt(generation_id: UUID, row: dict[str, Any]) -> Attempt:
    return Attempt(
        generation_id=generation_id,
        number=row["attempt"],
        user_id=row["user_id"],
        conversation_id=row["conversation_id"],
        model=row["model"],
        options=orjson.loads(row["options"]),
        notices=tuple(orjson.loads(row["notices"])),
        opening=_opening(row),
        hint_replica=row["hint_replica"] or "",
        checkpointed_text=row["text_so_far"],
        first_token_at=row["first_token_at"],
        is_cancelled=row["is_cancelled"],
        is_background=row["is_background"],
        is_overdue=row["is_overdue"],
        is_unnamed=row["is_unnamed"],
    )


def _opening(row: dict[str, Any]) -> Opening:
    last = None
    if row["last_id"] is not None:
        last = Said(row["last_id"], row["role"], row["content"], orjson.loads(row["token_counts"]))
    newest = orjson.loads(row["memories"] or "[]")
    return Opening(
        last=last,
        tip=row["tip"],
        context_version=row["context_version"],
        is_temporary=row["temporary"],
        user_instructions=row["user_instructions"],
        instructions=row["instructions"],
        memories=tuple(Remembered(UUID(memory_id), content) for memory_id, content in reversed(newest)),
        previous=record_in(orjson.loads(row["previous"] or "null")),
    )
