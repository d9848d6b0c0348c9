"""Keeping how many tokens a message has, so that it is counted once."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection

# Rows are locked in the order of their ids, so that two that store counts of the same messages do not wait for each
# other. A count that is there is not written again.
_STORE = """
WITH counted AS (
  SELECT message.id, given.tokens
  FROM conversations_message message
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


def store(counts: Mapping[UUID, int], tokenizer: str) -> None:
    """Keep the messages' counts beside those of other tokenizers. Messages that were deleted are left alone."""
    if not counts:
        return
    parameters: dict[str, Any] = {"ids": list(counts), "tokens": list(counts.values()), "tokenizer": tokenizer}
    with connection.cursor() as cursor:
        cursor.execute(_STORE, parameters)
