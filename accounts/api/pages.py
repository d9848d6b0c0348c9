"""Pages of a list that is ordered by UUIDv7, newest first."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import QueryDict

from accounts.exceptions import InvalidRequest

DEFAULT_LIMIT = 30
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Page[Row: Model]:
    """Some rows, and where the next page begins."""

    rows: list[Row]
    next_cursor: str | None


def page_of[Row: Model](rows: QuerySet[Row, Any], query: QueryDict) -> Page[Row]:
    """Return the page that `?cursor=&limit=` asks for; raises `InvalidRequest`."""
    limit = _limit(query.get("limit"))
    cursor = query.get("cursor")
    if cursor:
        rows = rows.filter(pk__lt=_id_in(cursor))
    found = list(rows.order_by("-pk")[: limit + 1])
    more = len(found) > limit
    return Page(rows=found[:limit], next_cursor=_cursor(found[limit - 1].pk) if more else None)


def _limit(stated: str | None) -> int:
    if stated is None:
        return DEFAULT_LIMIT
    if not (stated.isascii() and stated.isdigit() and 1 <= int(stated[:4]) <= MAX_LIMIT):
        raise InvalidRequest(f"limit: A page has 1 to {MAX_LIMIT} entries.", param="limit")
    return int(stated)


def _cursor(row_id: UUID) -> str:
    return urlsafe_b64encode(row_id.bytes).decode().rstrip("=")


def _id_in(cursor: str) -> UUID:
    try:
        return UUID(bytes=urlsafe_b64decode(cursor.encode("ascii") + b"=="))
    except (Base64Error, ValueError) as error:
        raise InvalidRequest("cursor: This is not a cursor of this list.", param="cursor") from error
