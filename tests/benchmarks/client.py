"""The client of both paths: sends a request over its own connection and notes when which bytes came back.

While an answer runs nothing is parsed: a client that is busy would measure itself.
"""

import asyncio
import re
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import accumulate

import orjson

_STAMPS = re.compile(rb'"(?:text|content)": ?"((?: \d+)+)"')
END_OF_STREAM = b"\r\n0\r\n\r\n"
"""A server may send the last, empty chunk by itself; a header may end in a 0, but no line of the head is one."""
END_OF_HEAD = b"\r\n\r\n"
_STATUS = b"HTTP/1.1 200"


@dataclass(frozen=True, slots=True)
class Request:
    """One POST of JSON."""

    port: int
    path: str
    body: dict[str, object]
    bearer: str = ""
    accept: str = "text/event-stream"

    def encoded(self) -> bytes:
        content = orjson.dumps(self.body)
        head = [f"POST {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Content-Type: application/json"]
        head += [f"Accept: {self.accept}", f"Content-Length: {len(content)}"]
        head += [f"Authorization: Bearer {self.bearer}"] if self.bearer else []
        return "\r\n".join([*head, "", ""]).encode() + content


@dataclass(frozen=True, slots=True)
class Token:
    """When the model server sent a token and when it arrived, by the machine's monotonic clock."""

    sent_ns: int
    arrived_ns: int

    @property
    def delay_ms(self) -> float:
        return (self.arrived_ns - self.sent_ns) / 1e6


@dataclass(slots=True)
class Answer:
    """What came back on one connection. `due_ns` is when the request should have been sent."""

    due_ns: int
    asked_ns: int = 0
    parts: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.parts)

    def tokens(self) -> list[Token]:
        """Return the tokens in order; one has arrived when the read that completes its event returned."""
        ends = list(accumulate(len(data) for _, data in self.parts))
        return [
            Token(int(stamp), self.parts[bisect_right(ends, match.end() - 1)][0])
            for match in _STAMPS.finditer(self.body)
            for stamp in match[1].split()
        ]

    def is_whole(self, token_count: int) -> bool:
        return self.body.startswith(_STATUS) and len(self.tokens()) == token_count

    def first_token_ms(self) -> float:
        """Return the time from the request's sending to the arrival of the first token."""
        return (self.tokens()[0].arrived_ns - self.asked_ns) / 1e6


class Exchange(asyncio.Protocol):
    """The client's end of one connection. An answer has ended when a read ends with `end`, or the connection does."""

    def __init__(self, answer: Answer, *, end: bytes = END_OF_STREAM, on_data: Callable[[bytes], None] | None = None):
        self._answer = answer
        self._end_of_answer = end
        self._tail = b""
        self._on_data = on_data
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._answer.parts.append((time.monotonic_ns(), data))
        if self._on_data is not None:
            self._on_data(data)
        if self._last_bytes(data).endswith(self._end_of_answer):
            self._end()

    def _last_bytes(self, data: bytes) -> bytes:
        """Return what came last, enough of it to hold the end."""
        self._tail = (self._tail + data)[-len(self._end_of_answer) :]
        return self._tail

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


@asynccontextmanager
async def connected(port: int, exchange: Exchange) -> AsyncIterator[asyncio.Transport]:
    """Give an open connection, which ends with the block."""
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: exchange, "127.0.0.1", port)
    try:
        yield transport
    finally:
        transport.abort()


async def ask(request: Request, *, due_ns: int, timeout_seconds: float) -> Answer:
    """Send a request at its time and read its answer to the end. The connection is opened before the clock starts."""
    answer = Answer(due_ns)
    exchange = Exchange(answer)
    async with connected(request.port, exchange) as transport:
        encoded = request.encoded()
        await asyncio.sleep((due_ns - time.monotonic_ns()) / 1e9)
        answer.asked_ns = time.monotonic_ns()
        transport.write(encoded)
        # An answer that is not whole in time counts as failed.
        await asyncio.wait([exchange.ended], timeout=timeout_seconds)
    return answer
