"""Writes the usage ledger."""

from uuid import UUID

from django.db import connection

RECORD_ENDED = """
INSERT INTO accounts_usagerecord
  (generation_id, user_id, conversation_id, model, tokens_in, tokens_cached, tokens_out, created_at)
SELECT generation_id, user_id, conversation_id, model, %(tokens_in)s, %(tokens_cached)s, %(tokens_out)s, now()
FROM ended ON CONFLICT (generation_id) DO NOTHING
"""
"""Records what each row of `ended` used, as a part of the statement that ends it. Only the first time counts."""

_RECORD = """
WITH ended AS (
  SELECT %(generation_id)s::uuid AS generation_id, %(user_id)s::uuid AS user_id,
         %(conversation_id)s::uuid AS conversation_id, %(model)s AS model
) RECORD_ENDED
""".replace("RECORD_ENDED", RECORD_ENDED)


def record(
    *,
    generation_id: UUID,
    user_id: UUID,
    conversation_id: UUID | None,
    model: str,
    tokens_in: int,
    tokens_cached: int,
    tokens_out: int,
) -> None:
    """Write what a generation used, in the caller's transaction. Only the first time counts."""
    parameters = {
        "generation_id": generation_id,
        "user_id": user_id,
        "conversation_id": conversation_id,
        "model": model,
        "tokens_in": tokens_in,
        "tokens_cached": tokens_cached,
        "tokens_out": tokens_out,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, parameters)
