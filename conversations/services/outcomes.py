"""How a generation ended, and how that is told."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from conversations.context.record import Record
from conversations.models import Message

RETRYABLE_CODES = frozenset({"no_capacity", "internal_error"})
"""Errors after which the same message may be sent again as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a generation. Token counts are what was really read and decoded; `record` is what the model saw."""

    status: Message.Status
    finish_reason: str
    content: str
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)
    first_token_at: datetime | None = None
    replica: str = ""
    model_version: str = ""
    record: Record | None = None
    error_code: str = ""
    error_message: str = ""


def failure_event(outcome: Outcome) -> tuple[str, dict[str, Any]] | None:
    """Return type and data of the event that tells why an answer failed; `None` for one that did not."""
    if not outcome.error_code:
        return None
    is_retryable = outcome.error_code in RETRYABLE_CODES
    return "error", {"code": outcome.error_code, "message": outcome.error_message, "retryable": is_retryable}


def done_event(generation_id: UUID, outcome: Outcome) -> dict[str, Any]:
    """Return the data of the last event of a stream."""
    used = {"in": outcome.tokens_in, "cached": outcome.tokens_cached, "out": outcome.tokens_out}
    return {"message_id": str(generation_id), "finish_reason": outcome.finish_reason, "usage": used}
