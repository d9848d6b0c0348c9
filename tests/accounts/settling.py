"""Ends a generation of which only the ledger knows, with the statement's part that every real end has."""

from decimal import Decimal

from django.db import connection

from accounts.usage import SETTLE_ENDED

_SETTLE = f"""
WITH ended AS (
  SELECT %(generation_id)s::uuid AS generation_id, %(user_id)s::uuid AS user_id,
         %(conversation_id)s::uuid AS conversation_id, %(model)s AS model
), {SETTLE_ENDED}
SELECT count(*) FROM recorded
"""


def settle(
    *,
    generation_id,
    user_id,
    conversation_id,
    model,
    tokens_in,
    tokens_cached,
    tokens_out,
    cost=Decimal(0),
    model_version="",
):
    """Write what a generation used. Say whether it was the first time: no other counts."""
    parameters = locals()
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, parameters)
        return bool(cursor.fetchone()[0])
