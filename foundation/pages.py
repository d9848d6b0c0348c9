"""Pages of a list: `{"data": […], "next_cursor": …}`. A cursor names the last item seen, so a changing list is safe."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

import orjson
from django.db.models import Model, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from foundation.errors import DomainError

DEFAULT_LIMIT = 30
MOST_LIMIT = 100
PAGE_PARAMETERS = [
    OpenApiParameter("cursor", str, description="`next_cursor` of the page before."),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT, "default": DEFAULT_LIMIT},
        description="How many the page may hold.",
    ),
]


class InvalidParameter(DomainError):
    """A query parameter or header that cannot be read."""

    code = "invalid_request"


@dataclass(frozen=True, slots=True)
class Page[T]:
    """Some items of a list, and where the next ones begin."""

    items: list[T]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last item of a page: its id, and its time where the list is ordered by time."""

    last_id: UUID
    at: datetime | None = None

    def __str__(self) -> str:
        content = orjson.dumps([self.last_id, self.at.isoformat() if self.at else None])
        return urlsafe_b64encode(content).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, *, is_timed: bool = False) -> "Cursor":
        """Return what `str` made; raise `InvalidParameter` for anything else, also for another list's cursor."""
        try:
            last_id, at = orjson.loads(b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            cursor = cls(UUID(last_id), datetime.fromisoformat(at) if at is not None else None)
        except (ValueError, TypeError, AttributeError):
            _refuse_cursor()
        if is_timed != (cursor.at is not None and cursor.at.tzinfo is not None):
            _refuse_cursor()
        return cursor


def limit_of(query: QueryDict) -> int:
    """Return `?limit=`."""
    limit = whole_number(query.get("limit", str(DEFAULT_LIMIT)))
    if limit is None or not 1 <= limit <= MOST_LIMIT:
        raise InvalidParameter(f"limit must be a number from 1 to {MOST_LIMIT}.", param="limit")
    return limit


def whole_number(text: str) -> int | None:
    """Return the number that these ASCII digits spell, if it has at most 16 of them."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 16
    return int(text) if is_number else None


def newest_first[Row: Model](rows: QuerySet[Row, Any], *, cursor: str | None, limit: int) -> Page[Row]:
    """Return a page of rows whose UUIDv7 primary keys tell their age."""
    if cursor:
        rows = rows.filter(pk__lt=Cursor.read(cursor).last_id)
    return page_of(list(rows.order_by("-pk")[: limit + 1]), limit, lambda last: Cursor(last.pk))


def page_of[T](items: list[T], limit: int, cursor_after: Callable[[T], Cursor]) -> Page[T]:
    """Return a page of at most `limit` items; one item more says that there is another page."""
    if len(items) <= limit:
        return Page(items, None)
    return Page(items[:limit], str(cursor_after(items[limit - 1])))


def _refuse_cursor() -> NoReturn:
    raise InvalidParameter("This cursor is not one that this list has given out.", param="cursor") from None
