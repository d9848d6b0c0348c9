"""Keeping how many tokens a message has, so that it is counted once."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection

# The conversation is locked first, as by whoever deletes it, and messages in the order of their ids: so none that lock
# several wait for each other. A count that is there is not written again.
_STORE = """
WITH conversation AS (
  SELECT id FROM conversations_conversation WHERE id = %(conversation_id)s FOR KEY SHARE
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


def store(counts: Mapping[UUID, int], tokenizer: str, *, conversation_id: UUID) -> None:
    """Keep counts of a conversation's messages beside those of other tokenizers. What was deleted is left alone."""
    if not counts:
        return
    parameters: dict[str, Any] = {
        "conversation_id": conversation_id,
        "ids": list(counts),
        "tokens": list(counts.values()),
        "tokenizer": tokenizer,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORE, parameters)
