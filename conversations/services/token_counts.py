"""Keeping how many tokens each message and each part of a prompt has, so that they are counted once."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from conversations.context.record import Record

# The conversation is locked first, as by whoever deletes it, and messages in the order of their ids: so none that lock
# several wait for each other. A count that is there is not written again.
_STORE = """
WITH conversation AS (
  SELECT id FROM conversations_conversation WHERE id = %(conversation_id)s FOR KEY SHARE
), recorded AS (
  UPDATE conversations_generation generation SET context = %(record)s::jsonb FROM conversation
  WHERE %(record)s IS NOT NULL AND generation.message_id = %(generation_id)s
    AND generation.conversation_id = conversation.id
), counted AS (
  SELECT message.id, given.tokens
  FROM conversation JOIN conversations_message message ON message.conversation_id = conversation.id
  JOIN unnest(%(ids)s::uuid[], %(tokens)s::int[]) AS given (id, tokens) ON given.id = message.id
  WHERE message.token_counts -> %(tokenizer)s IS DISTINCT FROM to_jsonb(given.tokens)
  ORDER BY message.id
  FOR NO KEY UPDATE OF message
)
UPDATE conversations_message message
SET token_counts = message.token_counts || jsonb_build_object(%(tokenizer)s::text, counted.tokens)
FROM counted
WHERE message.id = counted.id
"""


def store(
    counts: Mapping[UUID, int],
    tokenizer: str,
    *,
    conversation_id: UUID,
    generation_id: UUID | None = None,
    record: Record | None = None,
) -> None:
    """Keep counts of a conversation's messages beside those of other tokenizers. What was deleted is left alone.

    A `record`, of what the model of `generation_id` saw, takes the place of the one that was stored at its end.
    """
    if not counts and record is None:
        return
    parameters: dict[str, Any] = {
        "generation_id": generation_id,
        "record": orjson.dumps(record.as_json()).decode() if record else None,
        "conversation_id": conversation_id,
        "ids": list(counts),
        "tokens": list(counts.values()),
        "tokenizer": tokenizer,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORE, parameters)
