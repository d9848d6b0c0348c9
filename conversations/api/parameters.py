"""Query parameters and headers of lists and streams."""

from rest_framework.request import Request

from conversations.exceptions import InvalidRequest
from foundation.pages import whole_number
from inference.positions import BEGINNING, Position

_MOST_EVENT_ID = 2**53


def choice_of(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """Return a parameter that is one of a few words, in whatever case; the first if left out."""
    value = request.query_params.get(name, choices[0]).lower()
    if value not in choices:
        raise InvalidRequest(f"{name} must be one of: {', '.join(choices)}.", param=name)
    return value


def position_of(request: Request) -> Position:
    """Return the position named by `Last-Event-ID`, or else by `?after=`; the beginning if neither is there."""
    name, text = "Last-Event-ID", request.headers.get("Last-Event-ID", "")
    if not text:
        name, text = "after", request.query_params.get("after", "")
    if not text:
        return BEGINNING
    event_id = whole_number(text)
    if event_id is None or event_id > _MOST_EVENT_ID:
        raise InvalidRequest(f"{name} takes the id of an event of this stream.", param=name)
    return Position.from_event_id(event_id)
