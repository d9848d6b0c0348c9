"""A server whose every byte a test decides: it reads one request per exchange and then follows a script."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

DEADLINE_SECONDS = 5

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Exchange:
    """One request on one connection, and the means to answer it."""

    path: str
    headers: dict[str, str]
    body: dict | None
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_first_of_connection: bool = False

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def start_stream(self) -> None:
        await self.write(STREAM_HEAD)

    async def send(self, data: bytes) -> None:
        """Sends `data` as one piece of a chunked body."""
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def send_frames(self, *frames: dict | str) -> None:
        await self.send(b"".join(event(frame) for frame in frames))

    async def send_repeatedly(self, data: bytes, *, every_seconds: float, times: int | None = None) -> None:
        """Sends `data` by the clock, `times` times or until the client closes its side."""
        sent = 0
        while not self.reader.at_eof() and sent != times:
            await self.send(data)
            sent += 1
            await self.stay_silent(every_seconds)

    async def stay_silent(self, seconds: float) -> None:
        """Sends nothing for that long, unless the client leaves before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.reader.read(1)

    async def end(self) -> None:
        await self.write(b"0\r\n\r\n")

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN."""
        linger_never = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_never)
        self.writer.transport.abort()

    async def wait_until_closed(self) -> None:
        """Returns when the client has closed its side; fails a test in which it never does."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                assert await self.reader.read(1) == b""
            except ConnectionResetError:
                return


type Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class ScriptedServer:
    url: str
    exchanges: list[Exchange] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Returns once `is_so()`; fails a test in which that never happens."""
        async with asyncio.timeout(DEADLINE_SECONDS), self.changed:
            await self.changed.wait_for(is_so)

    async def wait_until_asked(self, times: int = 1) -> None:
        await self.wait_until(lambda: len(self.exchanges) >= times)

    async def wait_until_closed(self) -> None:
        await self.wait_until(lambda: self.connections > 0 and self.open_connections == 0)

    async def note(self, *, connected: int = 0, closed: int = 0, exchange: Exchange | None = None) -> None:
        async with self.changed:
            self.connections += connected
            self.open_connections += connected - closed
            self.exchanges += [exchange] if exchange else []
            self.changed.notify_all()


@asynccontextmanager
async def scripted_server(script: Script) -> AsyncIterator[ScriptedServer]:
    """Runs `script` for every request until the client or the script closes the connection."""
    tasks: set[asyncio.Task] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        await server.note(connected=1)
        is_first = True
        try:
            while (exchange := await _read_request(reader, writer)) and not writer.is_closing():
                exchange.is_first_of_connection, is_first = is_first, False
                await server.note(exchange=exchange)
                await script(exchange)
        except ConnectionError:
            pass
        finally:
            writer.close()
            await server.note(closed=1)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server = ScriptedServer(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()
        for result in results:
            if isinstance(result, Exception):
                raise result


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Exchange(head[0].split(" ")[1], headers, json.loads(body) if body else None, reader, writer)


def event(frame: dict | str) -> bytes:
    text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode("utf-8", "surrogatepass") + b"\n\n"


def delta(text: str, reason: str | None = None) -> dict:
    """A chat chunk as TGI 3.3 sends it."""
    return {
        "object": "chat.completion.chunk",
        "id": "",
        "created": 1760000000,
        "model": "M",
        "system_fingerprint": "3.3.6-dev0-native",
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": reason}
        ],
        "usage": None,
    }


def usage(tokens_in: int, tokens_out: int, **details: int) -> dict:
    counts = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return {**delta(""), "choices": [], "usage": counts | ({"prompt_tokens_details": details} if details else {})}


def stream_of(*frames: dict | str) -> Script:
    """A script that sends `frames` in one piece and ends the body properly."""

    async def script(exchange: Exchange) -> None:
        await exchange.start_stream()
        await exchange.send_frames(*frames)
        await exchange.end()

    return script


def bytes_of(body: bytes) -> Script:
    """A script that sends `body` as an event stream, whatever it is."""

    async def script(exchange: Exchange) -> None:
        await exchange.start_stream()
        await exchange.send(body)
        await exchange.end()

    return script


def response_of(status: int, body: bytes, content_type: str | None = "application/json") -> Script:
    """A script that answers with a whole response."""

    async def script(exchange: Exchange) -> None:
        kind = f"Content-Type: {content_type}\r\n" if content_type else ""
        await exchange.write(f"HTTP/1.1 {status} X\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return script
