"""What is counted of a user: by Redis, or where that is away or has forgotten, by PostgreSQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Wish:
    """What a generation may use at most: `tokens` are the upper bound of what it reads, and the most that it writes."""

    generation_id: UUID
    model: str
    tokens: int


class RefusedBy(StrEnum):
    """Which count had no room."""

    NOTHING = ""
    REQUESTS = "requests"
    MINUTE = "minute"
    PLACES = "places"


@dataclass(frozen=True, slots=True)
class Counts:
    """Where a user stands, and whether a wish was let in. `holders` are told to who was refused for want of a place."""

    requests: int
    requests_reset_ms: int
    minute_tokens: int
    minute_resets_ms: int
    under_way: int
    refused_by: RefusedBy = RefusedBy.NOTHING
    holders: Mapping[UUID, int] = field(default_factory=dict)
    """Generations under way: for how many milliseconds."""


@dataclass(frozen=True, slots=True)
class Past:
    """What PostgreSQL knows of a user; ages are in milliseconds."""

    requests: Mapping[UUID, int]
    minute: Sequence[tuple[UUID, int, int]]
    """Generation, tokens, age."""
    under_way: Sequence[tuple[UUID, int, str, int]]
    """Generation, tokens, pool, age."""
