"""A generation as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from django.http import StreamingHttpResponse

from conversations.streaming.follow import Followed, KeepAlive, Limits, follow
from conversations.streaming.snapshot import Snapshot
from inference.positions import BEGINNING, Position
from inference.token_stream import StreamedEvent

KEEP_ALIVE_FRAME = b": keep-alive\n\n"


def frame(event: StreamedEvent) -> bytes:
    """Return an event's bytes. Its JSON has no raw line break, so one `data:` line carries it whole."""
    return b"event: %s\nid: %d\ndata: %s\n\n" % (event.type.encode(), event.position.event_id, event.data)


async def frames(
    snapshot: Snapshot, *, after: Position = BEGINNING, limits: Limits | None = None
) -> AsyncGenerator[bytes]:
    """Yield the frames of a generation from a position on, until its `done`."""
    async with aclosing(follow(snapshot, after=after, limits=limits)) as events:
        async for event in events:
            yield _frame_of(event)


def _frame_of(event: Followed) -> bytes:
    return KEEP_ALIVE_FRAME if isinstance(event, KeepAlive) else frame(event)


def stream_response(
    snapshot: Snapshot,
    *,
    after: Position = BEGINNING,
    limits: Limits | None = None,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Answer with the stream: never cached, never buffered by a proxy, never compressed."""
    response = StreamingHttpResponse(
        frames(snapshot, after=after, limits=limits), content_type="text/event-stream; charset=utf-8"
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    for name, value in (headers or {}).items():
        response[name] = value
    return response
