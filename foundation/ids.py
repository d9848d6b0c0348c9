"""Identifiers: UUIDv7, so that they sort by the time of their making and index well."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a fresh UUIDv7 (RFC 9562)."""
    return uuid7()


def earliest_id(seconds: float) -> UUID:
    """Return an id that is smaller than every one of `new_id` made from then on (seconds since the epoch)."""
    return UUID(int=int(seconds * 1000) << 80)


def made_at_seconds(identifier: UUID) -> float:
    """Return when an id of `new_id` was made: seconds since the epoch, to the millisecond, by its maker's clock."""
    return (identifier.int >> 80) / 1000
