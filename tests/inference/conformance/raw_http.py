"""A client that sees the bytes: one request per connection, chunks as they came, and how the connection ended."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class RawResponse:
    """`ended` is "complete" (as HTTP has it), "fin" (too early) or "reset"."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    chunks: list[bytes] = field(default_factory=list)
    ended: str = ""

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[str]:
        """The data of each event of a stream with LF endings."""
        return [part.removeprefix("data: ") for part in self.text.split("\n\n") if part.startswith("data:")]

    def frames(self) -> list[dict[str, Any]]:
        """The JSON of each event but `[DONE]`."""
        return [json.loads(event) for event in self.events() if event != "[DONE]"]


class Connection:
    """An open request whose answer can be read piece by piece, and which can be abandoned."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.response = RawResponse()

    async def read_head(self) -> RawResponse:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        self.response.status = int(first.split()[1])
        for line in lines:
            name, _, value = line.partition(":")
            self.response.headers[name.lower()] = value.strip()
        return self.response

    async def read_chunk(self) -> bytes:
        """The next chunk of the body; empty at its end."""
        size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
        chunk = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        self.response.body += chunk
        if chunk:
            self.response.chunks.append(chunk)
        return chunk

    async def read_until(self, wanted: bytes) -> None:
        """Read until the body holds these bytes."""
        while wanted not in self.response.body:
            assert await self.read_chunk(), f"the body ended without {wanted!r}"

    async def read_events(self, count: int) -> None:
        """Read until the body holds that many events."""
        while self.response.body.count(b"data:") < count:
            assert await self.read_chunk(), f"the body ended before event {count}"

    async def read_all(self) -> RawResponse:
        try:
            if not self.response.status:
                await self.read_head()
            if self.response.headers.get("transfer-encoding") == "chunked":
                while await self.read_chunk():
                    pass
            else:
                length = int(self.response.headers.get("content-length", "0"))
                self.response.body = await self.reader.readexactly(length)
            self.response.ended = "complete"
        except asyncio.IncompleteReadError:
            self.response.ended = "fin"
        except ConnectionResetError:
            self.response.ended = "reset"
        return self.response

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def connect(
    url: str, method: str, path: str, raw: bytes = b"", headers: dict[str, str] | None = None
) -> Connection:
    """Send a request; nothing of the answer is read yet."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 25)
    sent = {"host": parts.netloc, "content-length": str(len(raw)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + raw)
    return Connection(reader, writer)


async def open_post(url: str, path: str, body: object, headers: dict[str, str] | None = None) -> Connection:
    """Send a JSON request whose answer is read by the caller."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await connect(url, "POST", path, raw, {"content-type": "application/json", **(headers or {})})


async def post(
    url: str, path: str, body: object, headers: dict[str, str] | None = None, timeout: float = 30.0
) -> RawResponse:
    """A JSON request and its whole answer."""
    async with asyncio.timeout(timeout):
        connection = await open_post(url, path, body, headers)
        try:
            return await connection.read_all()
        finally:
            await connection.close()


async def get(url: str, path: str, timeout: float = 10.0) -> RawResponse:
    """A GET and its whole answer."""
    async with asyncio.timeout(timeout):
        connection = await connect(url, "GET", path)
        try:
            return await connection.read_all()
        finally:
            await connection.close()
