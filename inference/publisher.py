"""Publishes the events of all the generations that one worker writes, over one connection.

No timer anywhere: what arrives while a round trip is under way goes with the next one. So an idle worker sends the
first token at once, and a busy one sends many generations' tokens together.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import islice
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import orjson
import redis.asyncio
import structlog

from foundation.redis import REDIS_UNREACHABLE
from inference import token_stream
from inference.positions import BEGINNING, DONE_ORDINAL, FAILURE_ORDINAL, Position
from inference.script_connection import ScriptConnection
from inference.token_stream import Batch, Names, StreamedEvent, token_event

log = structlog.get_logger(__name__)

_MOST_GENERATIONS_AT_ONCE = 200
_RETRY_SECONDS = 0.2
_KEEP_AGAIN_SHARE = 0.1
"""A stream's time to live is set anew once so much of it may have gone by, not with each token."""


class TokenStreamWriter:
    """One attempt's end of a token stream: takes text and events, knows the position, never blocks.

    `text` is all of the answer so far, earlier attempts' included. Text is visible to readers only through here, so
    what a reader has seen is always a beginning of it.
    """

    def __init__(self, publisher: "Publisher", generation_id: UUID, attempt: int) -> None:
        self.generation_id = generation_id
        self.attempt = attempt
        self.names = Names.of(generation_id)
        self.drained: asyncio.Future[None] | None = None
        """What `Publisher.drain` waits for."""
        self._keep_again_at = 0.0
        self.on_fenced: Callable[[], None] = lambda: None
        self._publisher = publisher
        self._parts: list[str] = []
        self._unsent_text: list[str] = []
        self._unsent: list[StreamedEvent] = []
        self._position = BEGINNING
        self._published = BEGINNING

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def continue_from(self, events: list[StreamedEvent]) -> None:
        """Take over what earlier attempts published, before anything is written.

        A stream that has lost its beginning is of no use: what is written then replaces it.
        """
        text = "".join(event.text for event in events)
        if events and len(text.encode()) == events[-1].position.offset:
            self._parts = [text]
            self._position = self._published = events[-1].position

    def seed(self, text: str) -> None:
        """Begin a stream that holds nothing with text from the last checkpoint."""
        self._position = self._published = BEGINNING
        self._parts = []
        self.write_text(text)

    def write_text(self, text: str) -> None:
        """Append to the answer."""
        if text:
            self._parts.append(text)
            self._unsent_text.append(text)
            self._publisher.wake(self)

    def write_event(self, kind: str, **data: Any) -> None:
        """Say something beside the text, in its place between the tokens."""
        self._close_text()
        self._add(self._position.next(), kind, data)

    def write_end(self, failure: tuple[str, dict[str, Any]] | None, done: dict[str, Any]) -> None:
        """Say why the answer failed, if it did, and that it is done. Nothing can follow."""
        self._close_text()
        if failure:
            kind, data = failure
            self._add(Position(self._position.offset, FAILURE_ORDINAL), kind, data)
        self._add(Position(self._position.offset, DONE_ORDINAL), "done", done)

    def _add(self, position: Position, kind: str, data: dict[str, Any]) -> None:
        self._position = position
        self._unsent.append(StreamedEvent(position, kind, orjson.dumps({"type": kind, **data})))
        self._publisher.wake(self)

    def _close_text(self) -> None:
        if self._unsent_text:
            event = token_event(self._position, "".join(self._unsent_text))
            self._unsent_text.clear()
            self._position = event.position
            self._unsent.append(event)

    @property
    def is_drained(self) -> bool:
        return not self._unsent and not self._unsent_text

    def next_batch(self) -> Batch | None:
        """Return what is to be published now; it stays until `was_published`."""
        self._close_text()
        return Batch(self._published, tuple(self._unsent)) if self._unsent else None

    def seconds_to_keep(self, keep_seconds: int) -> int:
        """Return the time to live to set with the next batch; 0 where the stream's is long enough yet."""
        now = time.monotonic()
        if self._published != BEGINNING and now < self._keep_again_at:
            return 0
        self._keep_again_at = now + keep_seconds * _KEEP_AGAIN_SHARE
        return keep_seconds

    def was_published(self, batch: Batch) -> None:
        self._published = batch.events[-1].position
        del self._unsent[: len(batch.events)]

    def start_over(self) -> None:
        """Prepare to write the stream anew, whole, because Redis has lost it."""
        if self._published.offset:
            lost = self.text.encode()[: self._published.offset].decode()
            self._unsent.insert(0, token_event(BEGINNING, lost))
        self._published = BEGINNING


class Publisher:
    """Owns the connection and the task that sends. Use it with `async with`."""

    def __init__(self, client: "redis.asyncio.Redis", keep_seconds: int) -> None:
        self._script = ScriptConnection(client, token_stream.PUBLISH)
        self._keep_seconds = keep_seconds
        self._ready: dict[TokenStreamWriter, None] = {}
        self._wake = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        task = asyncio.create_task(self._send_for_ever(), name="token publisher")

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._script.close()

        self._stack.push_async_callback(end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def writer(self, generation_id: UUID, attempt: int) -> TokenStreamWriter:
        """Open one attempt's end of a stream."""
        return TokenStreamWriter(self, generation_id, attempt)

    def wake(self, writer: TokenStreamWriter) -> None:
        self._ready[writer] = None
        self._wake.set()

    async def drain(self, writer: TokenStreamWriter, timeout: float) -> bool:
        """Wait until all that a writer has is published; say whether that was so in time."""
        if writer.is_drained:
            return True
        if writer.drained is None:
            writer.drained = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([writer.drained], timeout=timeout)
        return bool(done)

    async def _send_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                try:
                    await self._send_once()
                except REDIS_UNREACHABLE as error:
                    log.warning("redis_unreachable", error=type(error).__name__, waiting=len(self._ready))
                    await asyncio.sleep(_RETRY_SECONDS)
                except Exception:
                    # Every answer of this worker goes through here: a fault of one round must not silence the rest.
                    log.exception("publishing_failed", waiting=len(self._ready))
                    await asyncio.sleep(_RETRY_SECONDS)

    async def _send_once(self) -> None:
        batches = self._next_batches()
        try:
            answers = await self._publish(batches)
        except BaseException:
            self._ready |= dict.fromkeys(writer for writer, _ in batches)
            raise
        for (writer, batch), answer in zip(batches, answers, strict=True):
            self._settle(writer, batch, answer)
        if refusal := next((answer for answer in answers if isinstance(answer, Exception)), None):
            # Out of memory, read-only, still loading: everything is kept, and tried again in a while.
            log.warning("publish_refused", error=type(refusal).__name__)
            await asyncio.sleep(_RETRY_SECONDS)

    def _next_batches(self) -> list[tuple[TokenStreamWriter, Batch]]:
        writers = list(islice(self._ready, _MOST_GENERATIONS_AT_ONCE))
        for writer in writers:
            del self._ready[writer]
        return [(writer, batch) for writer in writers if (batch := writer.next_batch())]

    async def _publish(self, batches: list[tuple[TokenStreamWriter, Batch]]) -> list[object]:
        keep_seconds = self._keep_seconds
        return await self._script.run(
            [
                token_stream.publish_arguments(
                    writer.names, writer.attempt, batch, writer.seconds_to_keep(keep_seconds)
                )
                for writer, batch in batches
            ]
        )

    def _settle(self, writer: TokenStreamWriter, batch: Batch, answer: object) -> None:
        if answer == b"fenced":
            writer.on_fenced()
            return
        if answer == b"ok":
            writer.was_published(batch)
        elif answer == b"gap":
            log.warning("token_stream_lost", generation_id=str(writer.generation_id))
            writer.start_over()
        if not writer.is_drained:
            self.wake(writer)
        elif writer.drained is not None:
            writer.drained.set_result(None)
            writer.drained = None
