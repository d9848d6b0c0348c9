"""Bounds what is kept of a request's body, and tells the length of one that came in chunks."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
MostBytes = Callable[[Mapping[str, Any]], Awaitable[int]]


class RequestBodies:
    """ASGI middleware for HTTP.

    Of a longer body only the request's `most_bytes` and one more are passed on: enough for the parsers to refuse it.
    A chunked body has no `Content-Length`, without which Django and REST framework take it for empty; it is known once
    it has come.
    """

    def __init__(self, application: Application, *, most_bytes: MostBytes) -> None:
        self._application = application
        self._most_bytes = most_bytes

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        most_bytes = await self._most_bytes(scope)
        await self._application(scope, _bounded(scope, receive, most_bytes), send)


def _bounded(scope: dict[str, Any], receive: Receive, most_bytes: int) -> Receive:
    left = most_bytes + 1

    async def bounded() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] != "http.request":
            return message
        body = message.get("body", b"")[:left]
        left -= len(body)
        if not message.get("more_body", False):
            _tell_length(scope, most_bytes + 1 - left)
        return {**message, "body": body}

    return bounded


def _tell_length(scope: dict[str, Any], byte_count: int) -> None:
    if byte_count and not any(name == b"content-length" for name, _ in scope["headers"]):
        scope["headers"] = [*scope["headers"], (b"content-length", str(byte_count).encode())]
