"""What our web server adds to uvicorn's protocols: bounds on what a client may send, and on how slowly it may read."""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    _Connection = asyncio.Protocol
else:
    _Connection = object

log = structlog.get_logger(__name__)

MOST_HEAD_BYTES = 16_384
"""A request's line and headers together."""
MOST_PAUSE_SECONDS = 60.0
"""A client that has not emptied its connection's buffer (64 KiB) by then is cut off; a stream can be resumed."""
_HEADER_FRAME_BYTES = len(b": \r\n")


class Patience:
    """Waits for a client that reads slowly, but not for ever: meanwhile `send` waits, and the buffer is kept."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._end: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._end = asyncio.get_running_loop().call_later(MOST_PAUSE_SECONDS, self._run_out)

    def cease(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _run_out(self) -> None:
        log.info("reader_too_slow")
        self._transport.abort()


class _Patient(_Connection):
    """A connection whose client may read slowly for a while."""

    _patience: Patience

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._patience = Patience(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cease()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._patience.cease()


class HttpProtocol(_Patient, HttpToolsProtocol):
    """One HTTP connection."""

    transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin_head()

    def shutdown(self) -> None:
        """End a stream at once: its reader goes on where it was, with another process. Let anything else finish."""
        cycle = self.cycle
        if cycle is not None and cycle.response_started and cycle.chunked_encoding and not cycle.response_complete:
            self.transport.close()
        else:
            super().shutdown()

    # What a request may bring. httptools keeps a header until it is complete, so what is fed to it is counted too.

    def _begin_head(self) -> None:
        self._is_in_head = True
        self._fed_bytes = self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._fed_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._fed_bytes > MOST_HEAD_BYTES:
            self._refuse_head()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _HEADER_FRAME_BYTES)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._begin_head()

    def _count(self, byte_count: int) -> None:
        self._head_bytes += byte_count
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse_head()
            raise ValueError("The request's head is too long.")  # ends the parsing

    def _refuse_head(self) -> None:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode())
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if cycle.scope["http_version"] == "1.0":
            app = UntilClosed(cycle, app)
        super()._start_asgi_task(cycle, app)


class UntilClosed:
    """Answers HTTP/1.0, which knows no chunks: what has no length ends with its connection."""

    def __init__(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.chunked_encoding = False
        self._cycle = cycle
        self._app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await self._app(scope, receive, self._send)

    async def _send(self, message: ASGISendEvent) -> None:
        cycle = self._cycle
        if message["type"] != "http.response.body":
            await cycle.send(message)
            return
        await cycle.flow.drain()
        if cycle.disconnected or cycle.response_complete:
            return
        if cycle.scope["method"] != "HEAD":
            cycle.transport.write(message.get("body", b""))
        if not message.get("more_body", False):
            cycle.response_complete = True
            cycle.message_event.set()
            cycle.transport.close()
            cycle.on_response()


class WebSocketProtocol(_Patient, WebSocketsSansIOProtocol):
    """One WebSocket."""

    async def send(self, message: ASGISendEvent) -> None:
        if self.close_sent and message["type"] == "websocket.send":
            # Closed for what the client did: to the application that is a client that has left, not a fault of its own.
            raise ClientDisconnected
        await super().send(message)
