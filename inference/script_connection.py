"""A connection of its own for one script that runs again and again, many calls in one write.

redis-py connects and signs in; what goes over the connection then is packed and parsed by hiredis alone. A pipeline on
redis-py's pool sets timers and makes a task's turn of each command and each answer: that was most of what it cost.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import hiredis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import ResponseError

_TIMEOUT_SECONDS = 5.0
_READ_BYTES = 256 * 1024


class ScriptConnection:
    """Runs one script. One task at a time may use it; a call that fails or is cancelled closes the connection."""

    def __init__(self, client: "redis.asyncio.Redis", script: str) -> None:
        self._connection: AbstractConnection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        self._connection.socket_timeout = None  # `_execute` has one for all
        self._parser = hiredis.Reader()
        self._script = script
        self._sha = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()

    async def run(self, calls: Sequence[Sequence[Any]]) -> list[object]:
        """Run the script with the arguments of each call; return the answers, an error in the place of a refused one.

        A Redis that does not know the script is taught it, and runs every call again: the script must bear that.
        """
        answers = await self._execute(("EVALSHA", self._sha, *call) for call in calls)
        if any(isinstance(answer, ResponseError) and str(answer).startswith("NOSCRIPT") for answer in answers):
            await self._execute([("SCRIPT", "LOAD", self._script)])
            answers = await self._execute(("EVALSHA", self._sha, *call) for call in calls)
        return answers

    async def close(self) -> None:
        await self._connection.disconnect()

    async def _execute(self, commands: Iterable[tuple[Any, ...]]) -> list[object]:
        connection = self._connection
        try:
            if connection._writer is None:
                await connection.connect()  # type: ignore[no-untyped-call]
                self._parser = hiredis.Reader(replyError=ResponseError)
            assert connection._writer is not None
            packed = [hiredis.pack_command(command) for command in commands]
            connection._writer.write(b"".join(packed))
            return await self._answers(len(packed))
        except BaseException:
            # Answers may still be on their way: they must not be taken for those of the next calls.
            await connection.disconnect(nowait=True)
            raise

    async def _answers(self, count: int) -> list[object]:
        writer, reader, parser = self._connection._writer, self._connection._reader, self._parser
        assert writer is not None
        assert reader is not None
        # Cheaper than `asyncio.timeout`: this is done for each round trip.
        alarm = asyncio.get_running_loop().call_later(_TIMEOUT_SECONDS, writer.transport.abort)
        try:
            answers: list[object] = []
            while True:
                while len(answers) < count and (answer := parser.gets()) is not False:
                    answers.append(answer)
                if len(answers) == count:
                    return answers
                data = await reader.read(_READ_BYTES)
                if not data:
                    raise ConnectionLost("Redis has closed the connection, or did not answer in time.")
                parser.feed(data)
        finally:
            alarm.cancel()
