"""How a reader joins a generation: it is said who watches, and read what the token stream holds already.

For all the readers that come meanwhile in one round trip, over one connection: each with commands of its own took
connections of their own, and more of the web process's time than anything else that Redis is asked for.
"""

import asyncio
import time
from typing import Any
from uuid import UUID

import redis.asyncio
from django.conf import settings

from conversations.streaming import presence
from foundation.redis import REDIS_UNREACHABLE
from inference import token_stream
from inference.positions import Position
from inference.script_connection import ScriptConnection
from inference.token_stream import StreamedEvent

MOST_EVENTS = 500
"""A reader who is answered with so many has more to read."""
_MOST_AT_ONCE = 200

_JOIN = """
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], ARGV[3], 1)
redis.call('EXPIRE', KEYS[2], ARGV[4])
return redis.call('XRANGE', KEYS[1], '(' .. ARGV[5], '+', 'COUNT', ARGV[6])
"""
"""ARGV: who watches and until when, the mark that somebody has, seconds to keep, position, how many events at most."""


class Joining:
    """The connection and what waits for it. Its owner closes it."""

    def __init__(self, client: "redis.asyncio.Redis", watcher: str) -> None:
        self._script = ScriptConnection(client, _JOIN)
        self._watcher = watcher
        self._asked: list[tuple[list[Any], asyncio.Future[object]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def join(self, generation_id: UUID, after: Position) -> list[StreamedEvent]:
        """Return the stream's events after a position, `MOST_EVENTS` at most; raises one of `REDIS_UNREACHABLE`."""
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asked.append((self._arguments(generation_id, after), answered))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all(), name="readers join")
        return token_stream.events_of(await answered)

    async def close(self) -> None:
        """Give up what is under way."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self._script.close()

    def _arguments(self, generation_id: UUID, after: Position) -> list[Any]:
        keys = [token_stream.events_key(generation_id), token_stream.state_key(generation_id)]
        watching = [self._watcher, time.time() + presence.VALID_SECONDS, presence.WATCHED]
        return [len(keys), *keys, *watching, settings.STREAM_KEEP_SECONDS, after.redis_id, MOST_EVENTS]

    async def _send_all(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked[:_MOST_AT_ONCE], self._asked[_MOST_AT_ONCE:]
                await self._send(asked)
        finally:
            self._sending = None

    async def _send(self, asked: list[tuple[list[Any], asyncio.Future[object]]]) -> None:
        try:
            answers = await self._script.run([arguments for arguments, _ in asked])
        except REDIS_UNREACHABLE as error:
            answers = [error] * len(asked)
        for (_, answered), answer in zip(asked, answers, strict=True):
            if answered.done():
                continue  # the reader has left
            if isinstance(answer, Exception):
                answered.set_exception(answer)
            else:
                answered.set_result(answer)
