"""Query parameters of lists and streams."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from conversations.exceptions import InvalidRequest
from inference.positions import BEGINNING, Position

DEFAULT_LIMIT = 30
MOST_LIMIT = 100
_MOST_EVENT_ID = 2**53

PAGE_PARAMETERS = [
    OpenApiParameter("cursor", str, description="`next_cursor` of the page before."),
    OpenApiParameter("limit", int, description=f"1 to {MOST_LIMIT}; {DEFAULT_LIMIT} if left out."),
]


def limit_of(request: Request) -> int:
    """Return `?limit=`."""
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    limit = _whole_number(text)
    if limit is None or not 1 <= limit <= MOST_LIMIT:
        raise InvalidRequest(f"limit must be a number from 1 to {MOST_LIMIT}.", param="limit")
    return limit


def choice_of(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """Return a parameter that is one of a few words; the first if left out."""
    value = request.query_params.get(name, choices[0])
    if value not in choices:
        raise InvalidRequest(f"{name} must be one of: {', '.join(choices)}.", param=name)
    return value


def position_of(request: Request) -> Position:
    """Return the position named by `Last-Event-ID`, or else by `?after=`; the beginning if neither is there."""
    text = request.headers.get("Last-Event-ID") or request.query_params.get("after") or ""
    if not text:
        return BEGINNING
    event_id = _whole_number(text)
    if event_id is None or event_id > _MOST_EVENT_ID:
        raise InvalidRequest("Last-Event-ID and after take the id of an event of this stream.", param="after")
    return Position.from_event_id(event_id)


def _whole_number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 16
    return int(text) if is_number else None
