"""Records of the ledger, each in one line."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from accounts.models import UsageRecord, User
from foundation.ids import new_id


def make_record(
    user: User,
    ended_at: datetime,
    *,
    day: date | None = None,
    model: str = "small",
    tokens: tuple[int, int, int] = (10, 4, 5),
    cost: str = "0",
    conversation_id: UUID | None = None,
) -> UsageRecord:
    """Record an answer that ended then; `tokens` are those read, those of them that were cached, those written."""
    tokens_in, tokens_cached, tokens_out = tokens
    return UsageRecord.objects.create(
        generation_id=new_id(),
        user=user,
        conversation_id=conversation_id,
        model=model,
        day=day or ended_at.astimezone(UTC).date(),
        tokens_in=tokens_in,
        tokens_cached=tokens_cached,
        tokens_out=tokens_out,
        cost=Decimal(cost),
        created_at=ended_at,
    )
