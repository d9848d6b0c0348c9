"""Server-sent events byte for byte as TGI sends them."""

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson
from aiohttp import web

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b":\n\n"


def event(value: Any) -> bytes:
    """One event; the JSON is compact and its non-ASCII characters are raw UTF-8."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def float32(value: float | None) -> float | None:
    """The shortest decimal that means the same as a 32-bit float."""
    if value is None:
        return None
    packed = struct.pack("f", value)
    for digits in range(6, 9):
        candidate = float(f"{value:.{digits}g}")
        if struct.pack("f", candidate) == packed:
            return candidate
    return float(f"{value:.9g}")


async def send_events(
    request: web.Request,
    events: AsyncGenerator[bytes],
    *,
    headers: dict[str, str],
    keep_alive_seconds: float,
) -> web.StreamResponse:
    """Answers 200 at once and then sends `events` as they come. A client that leaves cancels it."""
    response = web.StreamResponse(headers=headers)
    response.content_type = "text/event-stream"
    response.headers["cache-control"] = "no-cache"
    response.headers["x-accel-buffering"] = "no"
    async with aclosing(with_keep_alive(events, keep_alive_seconds)) as kept_alive:
        await response.prepare(request)
        async for chunk in kept_alive:
            await response.write(chunk)
    await response.write_eof()
    return response


async def with_keep_alive(events: AsyncGenerator[bytes], keep_alive_seconds: float) -> AsyncGenerator[bytes]:
    """`events`, with a comment whenever nothing came for `keep_alive_seconds`. Closes `events`."""
    async with aclosing(events):
        while True:
            upcoming = asyncio.ensure_future(_next_or_none(events))
            try:
                while not (await asyncio.wait({upcoming}, timeout=keep_alive_seconds))[0]:
                    yield KEEP_ALIVE
            finally:
                await _settle(upcoming)
            chunk = upcoming.result()
            if chunk is None:
                return
            yield chunk


async def _next_or_none(events: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(events, None)


async def _settle(upcoming: asyncio.Future[bytes | None]) -> None:
    """A generator can be closed only when nobody waits inside it."""
    if not upcoming.done():
        upcoming.cancel()
        await asyncio.wait({upcoming})
