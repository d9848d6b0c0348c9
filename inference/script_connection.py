"""A connection of its own for one script that runs again and again, many calls in one write.

A pipeline on redis-py's pool takes a connection out and puts it back, and sets timers for each command and each answer:
that was a third of what publishing a token cost.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoScriptError, ResponseError

_TIMEOUT_SECONDS = 5.0


class ScriptConnection:
    """Runs one script. One task at a time may use it; a call that fails or is cancelled closes the connection."""

    def __init__(self, client: "redis.asyncio.Redis", script: str) -> None:
        self._connection: AbstractConnection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        self._connection.socket_timeout = None  # `run` has one for all
        self._script = script
        self._sha = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()

    async def run(self, calls: Sequence[Sequence[Any]]) -> list[object]:
        """Run the script with the arguments of each call; return the answers, an error in the place of a refused one.

        A Redis that does not know the script is taught it, and runs every call again: the script must bear that.
        """
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            answers = await self._execute([("EVALSHA", self._sha, *call) for call in calls])
            if any(isinstance(answer, NoScriptError) for answer in answers):
                await self._execute([("SCRIPT", "LOAD", self._script)])
                answers = await self._execute([("EVALSHA", self._sha, *call) for call in calls])
            return answers

    async def close(self) -> None:
        await self._connection.disconnect()

    async def _execute(self, commands: list[tuple[Any, ...]]) -> list[object]:
        connection = self._connection
        try:
            if not connection.is_connected:
                await connection.connect()  # type: ignore[no-untyped-call]
            await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            return [await self._answer() for _ in commands]
        except BaseException:
            # Answers may still be on their way: they must not be taken for those of the next calls.
            await connection.disconnect(nowait=True)
            raise

    async def _answer(self) -> object:
        try:
            answer: object = await self._connection.read_response()
        except ResponseError as refusal:
            return refusal
        return answer
