"""What a conversation costs: how full its window is, what it has used, also in money, what its next turn will use."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, Sum

from accounts.models import UsageRecord
from conversations.models import Conversation, Generation
from foundation.pages import Cursor, Page, page_of

_MOST_STEPS = 8
_BYTES_PER_TOKEN = 4

_GAUGES = """
WITH RECURSIVE shown AS (
  SELECT conversation.id AS conversation_id, conversation.active_message_id AS next_id, NULL::bigint AS used,
         FALSE AS is_summarised, 0 AS step
  FROM conversations_conversation conversation WHERE conversation.id = ANY(%(ids)s)
  UNION ALL
  SELECT shown.conversation_id, message.parent_id,
         COALESCE(NULLIF(message.tokens_in + message.tokens_out, 0), (generation.context ->> 'total_tokens')::bigint),
         COALESCE(jsonb_typeof(generation.context -> 'summary') = 'object', FALSE), shown.step + 1
  FROM shown JOIN conversations_message message
  ON message.id = shown.next_id AND message.conversation_id = shown.conversation_id
  LEFT JOIN conversations_generation generation ON generation.message_id = message.id
  WHERE shown.used IS NULL AND shown.step < %(most_steps)s
)
SELECT conversation_id, used, is_summarised FROM shown WHERE used IS NOT NULL
"""
"""Goes up from the branch's end to the first answer of which something is known: the last may not have ended yet."""

_MEANS = """
SELECT AVG(COALESCE((token_counts ->> tokenizer.name)::bigint, octet_length(content)::numeric / %(bytes_per_token)s))
         FILTER (WHERE role = 'user'),
       AVG(tokens_out) FILTER (WHERE role = 'assistant' AND tokens_out > 0)
FROM conversations_message LEFT JOIN LATERAL (
  SELECT jsonb_object_keys(token_counts) AS name LIMIT 1
) tokenizer ON TRUE
WHERE conversation_id = %(id)s
"""
"""A question that nobody has counted yet is taken to have a token for every few bytes."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens read, those of them that were cached, and tokens written."""

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    def __add__(self, other: Self) -> "Tokens":
        return Tokens(
            self.tokens_in + other.tokens_in,
            self.tokens_cached + other.tokens_cached,
            self.tokens_out + other.tokens_out,
        )


@dataclass(frozen=True, slots=True)
class Gauge:
    """How many tokens the shown branch's last prompt and answer have, and whether a summary was among them."""

    used: int = 0
    is_summarised: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What one answer used, and what all answers up to and with it did."""

    message_id: UUID
    model: str
    created_at: datetime
    usage: Tokens
    accumulated: Tokens
    cost: Decimal


def gauges_of(conversation_ids: Iterable[UUID]) -> dict[UUID, Gauge]:
    """Return the gauge of each conversation, all in one statement, which reads no contents."""
    ids = list(conversation_ids)
    with connection.cursor() as cursor:
        cursor.execute(_GAUGES, {"ids": ids, "most_steps": _MOST_STEPS})
        known = {conversation_id: Gauge(used, is_summarised) for conversation_id, used, is_summarised in cursor}
    return {each: known.get(each, Gauge()) for each in ids}


def total_of(conversation: Conversation) -> Tokens:
    """Return what all answers of the conversation used, on every branch, by the ledger: copies have used nothing."""
    return _sum(_ledger(conversation))


def price_of(conversation: Conversation) -> Decimal:
    """Return what all answers of the conversation cost, at the prices of when they were written."""
    cost: Decimal = _ledger(conversation).aggregate(cost=Sum("cost", default=Decimal(0)))["cost"]
    return cost


def next_turn_of(conversation: Conversation, gauge: Gauge, *, limit: int | None) -> Tokens:
    """Return what the next turn will use, if question and answer are as long as they are on average.

    It reads the last prompt and answer again, which are cached by then, and the question.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MEANS, {"id": conversation.id, "bytes_per_token": _BYTES_PER_TOKEN})
        question, answer = (math.ceil(mean or 0) for mean in cursor.fetchone())
    tokens_in = gauge.used + question
    tokens_in = tokens_in if limit is None else min(tokens_in, limit)
    return Tokens(tokens_in, min(gauge.used, tokens_in), answer)


def turns_of(conversation: Conversation, *, cursor: str | None, limit: int) -> Page[Turn]:
    """Return what each answer used, oldest first."""
    ledger = _ledger(conversation)
    after = Cursor.read(cursor).last_id if cursor else None
    accumulated = _sum(ledger.filter(pk__lte=after)) if after else Tokens()
    rows = ledger.filter(pk__gt=after) if after else ledger
    turns = []
    for row in rows.order_by("pk")[: limit + 1]:
        usage = Tokens(row.tokens_in, row.tokens_cached, row.tokens_out)
        accumulated += usage
        turns.append(Turn(row.pk, row.model, row.created_at, usage, accumulated, row.cost))
    return page_of(turns, limit, lambda last: Cursor(last.message_id))


def _ledger(conversation: Conversation) -> QuerySet[UsageRecord]:
    generations = Generation.objects.filter(conversation=conversation)
    return UsageRecord.objects.filter(pk__in=generations.values("pk"), user_id=conversation.user_id)


def _sum(ledger: QuerySet[UsageRecord]) -> Tokens:
    names = ("tokens_in", "tokens_cached", "tokens_out")
    sums: dict[str, Any] = ledger.aggregate(**{name: Sum(name, default=0) for name in names})
    return Tokens(**sums)
