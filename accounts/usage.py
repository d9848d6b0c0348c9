"""Writes the usage ledger: what a generation used, exactly once, in the transaction that ends it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

SETTLE_ENDED = """
settled AS (
  DELETE FROM accounts_tokenreservation reservation USING ended
  WHERE reservation.generation_id = ended.generation_id
  RETURNING reservation.generation_id, reservation.user_id, reservation.day, reservation.pool, reservation.tokens
), recorded AS (
  INSERT INTO accounts_usagerecord
    (generation_id, user_id, conversation_id, model, model_version, day,
     tokens_in, tokens_cached, tokens_out, cost, created_at)
  SELECT ended.generation_id, ended.user_id, ended.conversation_id, ended.model, %(model_version)s,
         coalesce(settled.day, (now() AT TIME ZONE 'UTC')::date),
         %(tokens_in)s, %(tokens_cached)s, %(tokens_out)s, %(cost)s, clock_timestamp()
  FROM ended LEFT JOIN settled ON settled.generation_id = ended.generation_id
  ON CONFLICT (generation_id) DO NOTHING
  RETURNING generation_id, user_id, day, tokens_in + tokens_out AS tokens
), balance AS (
  SELECT user_id, day, pool, sum(tokens_used)::bigint AS used, sum(tokens_kept)::bigint AS kept FROM (
    SELECT recorded.user_id, recorded.day, coalesce(settled.pool, '') AS pool,
           recorded.tokens AS tokens_used, 0 AS tokens_kept
    FROM recorded LEFT JOIN settled ON settled.generation_id = recorded.generation_id
    UNION ALL
    SELECT user_id, day, pool, 0, tokens FROM settled
  ) AS entries GROUP BY user_id, day, pool
), balanced AS (
  INSERT INTO accounts_tokenbudget AS budget (user_id, day, pool, used, reserved)
  SELECT user_id, day, pool, used, 0 FROM balance ORDER BY user_id, day, pool
  ON CONFLICT (user_id, day, pool) DO UPDATE SET
    used = budget.used + excluded.used,
    reserved = budget.reserved - (
      SELECT kept FROM balance
      WHERE balance.user_id = budget.user_id AND balance.day = budget.day AND balance.pool = budget.pool
    )
)
"""
"""Settles each row of `ended` (generation_id, user_id, conversation_id, model), as parts of the statement that ends it.

It names the parts `settled`, `recorded`, `balance` and `balanced`, and takes the parameters tokens_in, tokens_cached,
tokens_out, cost and model_version, the same for all rows. Whoever deletes a reservation settles it: only the first time
counts. Budgets are locked last, and in one order.
"""

_SETTLE_ORPHANS = f"""
WITH ended AS (
  SELECT generation_id, user_id, NULL::uuid AS conversation_id, model FROM accounts_tokenreservation
  WHERE generation_id = ANY(%(generation_ids)s) ORDER BY generation_id FOR UPDATE
), {SETTLE_ENDED}
SELECT generation_id FROM settled
"""  # noqa: S608 — of constants

NOTHING_USED: dict[str, Any] = {
    "tokens_in": 0,
    "tokens_cached": 0,
    "tokens_out": 0,
    "cost": Decimal(0),
    "model_version": "",
}
"""The parameters of `SETTLE_ENDED` for what failed, was refused, or never began."""


def settle_orphans(generation_ids: Sequence[UUID]) -> list[UUID]:
    """Settle, with nothing used, what is still reserved of these generations; return which were."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE_ORPHANS, {"generation_ids": list(generation_ids), **NOTHING_USED})
        return [generation_id for (generation_id,) in cursor.fetchall()]
