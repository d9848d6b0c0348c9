"""The tokens of a UTC day, kept in the transaction that stores the message. Days go by the database's clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.quotas.counts import Wish
from accounts.quotas.rules import Rules

_RESERVE = """
WITH budget AS (
  INSERT INTO accounts_tokenbudget AS budget (user_id, day, pool, used, reserved)
  SELECT %(user_id)s::uuid, (now() AT TIME ZONE 'UTC')::date, %(pool)s, 0, %(tokens)s
  WHERE %(limit)s::bigint IS NULL OR %(tokens)s <= %(limit)s::bigint
  ON CONFLICT (user_id, day, pool) DO UPDATE SET reserved = budget.reserved + excluded.reserved
  WHERE %(limit)s::bigint IS NULL OR budget.used + budget.reserved + excluded.reserved <= %(limit)s::bigint
  RETURNING day, used + reserved AS taken
), reservation AS (
  INSERT INTO accounts_tokenreservation (generation_id, user_id, model, pool, day, tokens, created_at)
  SELECT %(generation_id)s::uuid, %(user_id)s::uuid, %(model)s, %(pool)s, day, %(tokens)s, clock_timestamp() FROM budget
)
SELECT taken, midnight, extract(epoch FROM midnight - clock_timestamp())::float8
FROM budget, LATERAL (SELECT (day + 1)::timestamp AT TIME ZONE 'UTC' AS midnight) AS next_day
"""
"""Whoever finds the row taken waits for it, and then sees what the other left: never more than the limit is let in."""

_TODAY = """
SELECT budget.pool, budget.used + budget.reserved, midnight, extract(epoch FROM midnight - clock_timestamp())::float8
FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS today
CROSS JOIN LATERAL (SELECT (today.day + 1)::timestamp AT TIME ZONE 'UTC' AS midnight) AS next_day
LEFT JOIN accounts_tokenbudget budget ON budget.user_id = %s AND budget.day = today.day
"""


@dataclass(frozen=True, slots=True)
class Today:
    """What a user's day has taken, by pool: what was used, and what is kept for answers under way."""

    taken: Mapping[str, int]
    resets_at: datetime
    resets_in_seconds: float


def reserve(rules: Rules, wish: Wish) -> Today | None:
    """Keep a wish's tokens, in the caller's transaction; `None` where the day has no room for them."""
    parameters: dict[str, Any] = {
        "user_id": rules.user_id,
        "generation_id": wish.generation_id,
        "model": wish.model,
        "pool": rules.pool,
        "tokens": wish.tokens,
        "limit": rules.tokens_per_day,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, parameters)
        row = cursor.fetchone()
    if row is None:
        return None
    taken, resets_at, resets_in_seconds = row
    return Today({rules.pool: taken}, resets_at, resets_in_seconds)


def today_of(user_id: UUID) -> Today:
    """Return what a user's day has taken until now."""
    with connection.cursor() as cursor:
        cursor.execute(_TODAY, [user_id])
        rows = cursor.fetchall()
    _, _, resets_at, resets_in_seconds = rows[0]
    return Today({pool: taken for pool, taken, *_ in rows if pool is not None}, resets_at, resets_in_seconds)
