"""Writes the usage ledger."""

from uuid import UUID

from accounts.models import UsageRecord


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
    UsageRecord.objects.bulk_create(
        [
            UsageRecord(
                generation_id=generation_id,
                user_id=user_id,
                conversation_id=conversation_id,
                model=model,
                tokens_in=tokens_in,
                tokens_cached=tokens_cached,
                tokens_out=tokens_out,
            )
        ],
        ignore_conflicts=True,
    )
