"""Daphne with backpressure: who sends faster than the client reads has to wait, as ASGI means it to be."""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from daphne.http_protocol import WebRequest
from daphne.server import Server

log = structlog.get_logger(__name__)

MOST_PAUSE_SECONDS = 60.0
"""A client that has not emptied its connection's buffer (64 KiB) by then is cut off; a stream can be resumed."""


class Pace:
    """What a connection says of its buffer; Twisted calls it a push producer."""

    def __init__(self) -> None:
        self._may_send = asyncio.Event()
        self._may_send.set()

    def pauseProducing(self) -> None:  # noqa: N802 — Twisted's name
        self._may_send.clear()

    def resumeProducing(self) -> None:  # noqa: N802 — Twisted's name
        self._may_send.set()

    def stopProducing(self) -> None:  # noqa: N802 — Twisted's name
        """The connection is lost; what is sent to it is dropped."""
        self._may_send.set()

    async def wait(self) -> None:
        """Return once there is room; raise `TimeoutError` where there is none for too long."""
        if not self._may_send.is_set():
            async with asyncio.timeout(MOST_PAUSE_SECONDS):
                await self._may_send.wait()


class PacedServer(Server):  # type: ignore[misc]  # daphne is untyped
    """Without it all that an application sends is kept in memory until a client, however slow, has read it."""

    async def handle_reply(self, protocol: Any, message: Mapping[str, Any]) -> None:
        connection = self.connections.get(protocol)
        if connection is not None and "disconnected" not in connection:
            await self._keep_pace(protocol, connection, message)
        await super().handle_reply(protocol, message)

    async def _keep_pace(self, protocol: Any, connection: dict[str, Any], message: Mapping[str, Any]) -> None:
        pace: Pace | None = connection.get("pace")
        if pace is None:
            pace = connection["pace"] = Pace()
            _register(protocol, pace)
        if message["type"] == "websocket.close":
            protocol.transport.unregisterProducer()
            return
        try:
            await pace.wait()
        except TimeoutError:
            log.info("reader_too_slow")
            protocol.transport.abortConnection()
            return
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            protocol.unregisterProducer()


def _register(protocol: Any, pace: Pace) -> None:
    if isinstance(protocol, WebRequest):
        protocol.registerProducer(pace, True)
        return
    # A WebSocket takes its connection over from HTTP's channel, which has nothing to produce any more.
    protocol.transport.unregisterProducer()
    protocol.transport.registerProducer(pace, True)
