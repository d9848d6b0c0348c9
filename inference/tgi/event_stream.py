"""The events of one open answer, read within the limits of `Timeouts`."""

import asyncio
from collections import deque

import aiohttp

from inference.tgi.chunks import Chunk, parse_chunk
from inference.tgi.errors import Incomplete, Misbehaved, Stalled
from inference.tgi.sse import EventReader
from inference.tgi.transport import Timeouts, name_failure

_DONE = b"[DONE]"
_END_OF_BODY_SECONDS = 0.05
_USAGE_SECONDS = 2.0


class EventStream:
    """Waits for the chunks of an answer; `close` it at the end.

    Keep-alives prolong no wait, and the time that the caller takes with a chunk is not the server's. One alarm per
    answer, set anew only when it rings, watches over that: `asyncio.timeout` around each read cost 9 us per token.
    """

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts, *, deadline: float) -> None:
        self._response = response
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = deadline
        self._alarm = self._loop.call_at(deadline, self._check_progress)
        self._is_waiting = False
        self._has_stalled = False
        self._reader = EventReader()
        self._pending: deque[bytes] = deque()
        self._has_ended = False

    def close(self) -> None:
        self._alarm.cancel()

    def give_up(self) -> None:
        """Closes the response, which ends a wait for it with an error."""
        self._has_stalled = True
        self._response.close()

    def note_progress(self) -> None:
        """Gives the next token its own time, which starts with the next wait."""
        self._deadline = None

    def expect_usage(self) -> None:
        """The text is complete: bounds the wait for the little that may follow."""
        self._deadline = self._loop.time() + _USAGE_SECONDS

    async def next_chunk(self) -> Chunk | None:
        """The next chunk; `None` for the end marker. Raises what a frame tells, or what happened to the connection."""
        payload = await self._next_event()
        if payload == _DONE:
            return None
        try:
            return parse_chunk(payload)
        except Misbehaved as error:
            if self._has_ended:
                raise Incomplete("the stream ended within a frame") from error
            raise

    async def finish_body(self) -> None:
        """Reads the end of the body, which comes with the last event: only then can the connection be used again."""
        try:
            async with asyncio.timeout(_END_OF_BODY_SECONDS):
                await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError):
            return

    async def _next_event(self) -> bytes:
        while True:
            while self._pending:
                if payload := self._pending.popleft():
                    return payload
            if self._has_ended:
                raise Incomplete("the stream ended without a final frame")
            chunk = await self._read()
            self._has_ended = not chunk
            self._pending.extend(self._reader.feed(chunk) if chunk else self._reader.end())

    async def _read(self) -> bytes:
        if self._deadline is None:
            self._deadline = self._loop.time() + self._timeouts.token_seconds
        if self._deadline < self._alarm.when():
            self._set_alarm(self._deadline)
        self._is_waiting = True
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            if self._has_stalled:
                raise Stalled("no token in time") from error
            raise name_failure(error, broken=Incomplete) from error
        finally:
            self._is_waiting = False

    def _check_progress(self) -> None:
        now = self._loop.time()
        if self._is_waiting and self._deadline is not None and self._deadline <= now:
            self.give_up()
        elif self._deadline is not None and self._deadline > now:
            self._set_alarm(self._deadline)
        else:
            self._set_alarm(now + self._timeouts.token_seconds)

    def _set_alarm(self, when: float) -> None:
        self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._check_progress)
