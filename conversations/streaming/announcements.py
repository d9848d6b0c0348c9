"""The Redis connection over which one web process hears what is announced.

redis-py's own subscription makes a task's turn, timers and several objects of each message: that was a quarter of what
relaying a token cost. Here all that one read has brought is delivered at once.
"""

import asyncio
from collections.abc import Callable, Iterable

import hiredis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import ResponseError

_READ_BYTES = 256 * 1024


class Announcements:
    """Subscribes to channels and delivers what comes; after a loss, its owner listens again and subscribes anew."""

    def __init__(
        self,
        client: "redis.asyncio.Redis",
        *,
        on_subscribed: Callable[[bytes], None],
        on_message: Callable[[bytes, bytes], None],
        patience_seconds: float = 5.0,
    ) -> None:
        self._client = client
        self._on_subscribed = on_subscribed
        self._on_message = on_message
        self._patience_seconds = patience_seconds
        self._connection: AbstractConnection | None = None
        self._caught_up: list[asyncio.Future[None]] = []
        self._heard_bytes = 0

    async def listen(self, on_connected: Callable[[], None]) -> None:
        """Connect, say so, and deliver until the connection is lost: that raises one of `REDIS_UNREACHABLE`."""
        connection: AbstractConnection = self._client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            self._connection = connection
            on_connected()
            await self._deliver_all(connection)
        finally:
            self._connection = None
            for waiting in self._caught_up:
                waiting.cancel()
            self._caught_up.clear()
            await connection.disconnect(nowait=True)

    def subscribe(self, channels: Iterable[str]) -> None:
        """Ask for what is announced there; `on_subscribed` tells when it comes. Without a connection, do nothing."""
        self._write("SUBSCRIBE", *channels)

    def unsubscribe(self, channels: Iterable[str]) -> None:
        self._write("UNSUBSCRIBE", *channels)

    async def catch_up(self) -> bool:
        """Wait until all that Redis has announced so far is delivered; say whether it is.

        Gives up a connection over which nothing at all comes meanwhile.
        """
        if self._connection is None:
            return False
        answered = asyncio.get_running_loop().create_future()
        self._caught_up.append(answered)
        heard_bytes = self._heard_bytes
        self._write("PING")
        await asyncio.wait([answered], timeout=self._patience_seconds)
        if not answered.done() and self._heard_bytes == heard_bytes and self._connection is not None:
            await self._connection.disconnect(nowait=True)
        return answered.done() and not answered.cancelled()

    def _write(self, *command: str) -> None:
        connection = self._connection
        if connection is not None and connection._writer is not None and len(command) > (command[0] != "PING"):
            connection._writer.writelines(connection.pack_command(*command))

    async def _deliver_all(self, connection: AbstractConnection) -> None:
        reader, parser = connection._reader, hiredis.Reader()
        assert reader is not None
        while data := await reader.read(_READ_BYTES):
            self._heard_bytes += len(data)
            parser.feed(data)
            while (answer := parser.gets()) is not False:
                self._take(answer)
        raise ConnectionLost("Redis has closed the connection.")

    def _take(self, answer: object) -> None:
        if isinstance(answer, hiredis.ReplyError):
            raise ResponseError(str(answer))
        # Without a subscription the answer to PING is a string, with one a list; RESP3 knows only the string.
        if not isinstance(answer, list) or answer[0] == b"pong":
            self._caught_up.pop(0).set_result(None)
        elif answer[0] == b"message":
            self._on_message(answer[1], answer[2])
        elif answer[0] == b"subscribe":
            self._on_subscribed(answer[1])
