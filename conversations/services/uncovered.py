"""Reads which messages of a path no summary covers yet."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from conversations.context.epochs import Measured
from conversations.context.material import Said
from conversations.context.summaries import shown_bytes
from conversations.models import Message, Summary

_BYTES_PER_TOKEN = 3
"""What is supposed of a message that nobody has counted."""

_UNCOVERED = """
WITH RECURSIVE path AS (
  SELECT id, parent_id, role, octet_length(content) AS bytes, (token_counts ->> %(tokenizer)s)::int AS tokens
  FROM conversations_message WHERE id = %(tip)s AND conversation_id = %(conversation_id)s
  UNION
  SELECT message.id, message.parent_id, message.role, octet_length(message.content),
         (message.token_counts ->> %(tokenizer)s)::int
  FROM path JOIN conversations_message message
  ON message.id = path.parent_id AND message.conversation_id = %(conversation_id)s
  WHERE NOT EXISTS (SELECT FROM conversations_summary summary WHERE summary.covers_up_to_id = message.id)
)
SELECT path.id, path.role, path.bytes, COALESCE(path.tokens, path.bytes / %(bytes_per_token)s), summary.id
FROM path LEFT JOIN conversations_summary summary ON summary.covers_up_to_id = path.parent_id
ORDER BY path.id
"""
"""Walks by size alone, from the newest message up to the newest covered one: ids grow along a path.

`UNION` drops what comes a second time, so that a damaged tree's circle ends.
"""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """The messages of a path after those that `before` covers; without one, the whole path."""

    messages: Sequence[Measured]
    before: Summary | None


def read_uncovered(*, conversation_id: UUID, tip: UUID, tokenizer: str) -> Uncovered:
    """Return what the path up to and with the message `tip` has behind the newest summary that holds for it."""
    parameters: dict[str, Any] = {
        "conversation_id": conversation_id,
        "tip": tip,
        "tokenizer": tokenizer,
        "bytes_per_token": _BYTES_PER_TOKEN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNCOVERED, parameters)
        rows = cursor.fetchall()
    messages = [Measured(row[0], row[1], tokens=row[3], shown_bytes=shown_bytes(row[2])) for row in rows]
    before = Summary.objects.filter(pk=rows[0][4]).first() if rows and rows[0][4] else None
    return Uncovered(messages, before)


def read_said(conversation_id: UUID, message_ids: Collection[UUID]) -> list[Said]:
    """Return what those of the messages say that there are, in their order along the path."""
    found = Message.objects.filter(pk__in=message_ids, conversation=conversation_id).order_by("id")
    rows = found.values_list("id", "role", "content")
    return [Said(message_id, "user" if role == "user" else "assistant", content) for message_id, role, content in rows]
