"""What is read of a file: conversations of messages that name each other by the file's own ids."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from conversations.models import Message

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_CLOCK_ERROR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Node:
    """One message of a file. Without a role it is not shown: what follows it, follows the message above it."""

    id: str
    parent_id: str | None
    role: Message.Role | None = None
    content: str = ""
    created_at: datetime | None = None
    status: Message.Status = Message.Status.COMPLETE
    finish_reason: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True)
class IncomingSummary:
    """A summary of a conversation's older part."""

    covers_up_to: str
    made_for: str
    epoch: int
    text: str
    model: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """One conversation of a file. `joins_turns` says whether several messages of one side are one here."""

    source: str
    source_id: str
    nodes: list[Node]
    active_id: str | None
    title: str = ""
    is_title_chosen: bool = False
    model: str = ""
    instructions: str = ""
    pinned: bool = False
    archived: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    summaries: list[IncomingSummary] = field(default_factory=list)
    joins_turns: bool = False


def time_of(value: Any) -> datetime | None:
    """Return a time given as seconds or as RFC 3339 has it; `None` for what cannot be one."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
        elif isinstance(value, bool) or value is None:
            return None
        else:
            time = datetime.fromtimestamp(float(value), UTC)
        is_possible = time.tzinfo is not None and _EARLIEST < time <= timezone.now() + _MOST_CLOCK_ERROR
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return time.astimezone(UTC) if is_possible else None


def text_of(value: Any, most_characters: int | None = None) -> str:
    """Return a text; nothing for what is none."""
    return value[:most_characters] if isinstance(value, str) else ""


def number_of(value: Any) -> int | None:
    """Return a count that a row can hold; `None` for anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_count else None
