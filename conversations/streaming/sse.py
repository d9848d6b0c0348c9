"""A generation as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from django.http import StreamingHttpResponse

from accounts.callers import Caller
from conversations.streaming.follow import Followed, KeepAlive, Limits, follow_together
from conversations.streaming.hub import current_hub
from conversations.streaming.snapshot import Snapshot
from inference.positions import BEGINNING, Position
from inference.token_stream import StreamedEvent

KEEP_ALIVE_FRAME = b": keep-alive\n\n"


def frame(event: StreamedEvent) -> bytes:
    """Return an event's bytes. Its JSON has no raw line break, so one `data:` line carries it whole."""
    return b"event: %s\nid: %d\ndata: %s\n\n" % (event.type.encode(), event.position.event_id, event.data)


async def frames(
    snapshot: Snapshot, caller: Caller, *, after: Position = BEGINNING, limits: Limits | None = None
) -> AsyncGenerator[bytes]:
    """Yield the frames of a generation from a position on, until its `done`; those that are there at once, together."""
    with current_hub().openings.opened_by(caller) as opening:
        async with aclosing(follow_together(snapshot, after=after, limits=limits, opening=opening)) as together:
            async for events in together:
                yield b"".join([_frame_of(event) for event in events])


def _frame_of(event: Followed) -> bytes:
    return KEEP_ALIVE_FRAME if isinstance(event, KeepAlive) else frame(event)


class EventStream(StreamingHttpResponse):
    """A streamed response whose frames go to the server as they are: Django's own wraps and copies each."""

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, content_type="text/event-stream; charset=utf-8")
        self._frames = frames

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._frames


def stream_response(
    snapshot: Snapshot,
    caller: Caller,
    *,
    after: Position = BEGINNING,
    limits: Limits | None = None,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Answer the caller with the stream: never cached, never buffered by a proxy, never compressed."""
    response = EventStream(frames(snapshot, caller, after=after, limits=limits))
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    for name, value in (headers or {}).items():
        response[name] = value
    return response
