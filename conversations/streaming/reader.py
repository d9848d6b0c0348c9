"""One reader's share of a feed: what was announced and not yet taken, within bounds."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from inference.positions import Position
from inference.queue import Place
from inference.token_stream import Batch, StreamedEvent

MOST_PENDING_BYTES = 256 * 1024
"""More than this is dropped for a reader that is slow; it reads from the token stream again when it gets to it."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Something may have been missed: read the token stream, or the database, from the reader's position on."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The generation waits in the queue."""

    place: Place


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The reader may read no more."""


type Told = Batch | LookAgain | Waiting | Interrupted


class Reader:
    """Takes announcements without ever blocking the one who delivers them."""

    def __init__(self) -> None:
        self._pending: deque[Told] = deque()
        self._pending_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.is_interrupted = False
        self.missed: Sequence[StreamedEvent] | None = None
        """What was published before it heard anything, or the beginning of that; `None` where that is not known."""
        self.has_seen_the_end = False
        """Set by whoever reads, once `done` has come: leaving then starts no grace time."""

    def offer(self, batch: Batch) -> None:
        """Keep a batch for the reader; if it has too many already, only the fact that there is more."""
        size = _size_of(batch)
        if self._pending_bytes + size > MOST_PENDING_BYTES:
            self.look_again()
            return
        self._pending_bytes += size
        self._push(batch)

    def look_again(self) -> None:
        """Have the reader read from its position on."""
        self._start_over(LookAgain())

    def interrupt(self) -> None:
        """Have the reader stop, whatever else there is."""
        self.is_interrupted = True
        self._start_over(Interrupted())

    def tell_place(self, place: Place) -> None:
        self._push(Waiting(place))

    def close(self) -> None:
        """Stop the clock: nobody reads any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _start_over(self, what: Told) -> None:
        self._pending.clear()
        self._pending_bytes = 0
        self._push(what)

    def _push(self, what: Told) -> None:
        if self.is_interrupted and not isinstance(what, Interrupted):
            return
        self._pending.append(what)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, timeout_seconds: float) -> Told | None:
        """Return what came next; `None` if nothing came in time."""
        if not self._pending:
            await self._wait(timeout_seconds)
            if not self._pending:
                return None
        what = self._pending.popleft()
        if isinstance(what, Batch):
            self._pending_bytes -= _size_of(what)
        return what

    def next_after(self, position: Position) -> Batch | None:
        """Return what came next if it is there already: a batch that begins at this position."""
        what = self._pending[0] if self._pending else None
        if not isinstance(what, Batch) or what.previous != position:
            return None
        del self._pending[0]
        self._pending_bytes -= _size_of(what)
        return what

    async def _wait(self, timeout_seconds: float) -> None:
        """Wait for something, or for the time. Each token comes by here: the alarm is not set anew for each."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + timeout_seconds
        if self._alarm is None or self._alarm.when() > self._due:
            self._set_alarm(loop)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        self.close()
        self._alarm = loop.call_at(self._due, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        if loop.time() < self._due:
            self._set_alarm(loop)  # something came since it was set
        else:
            self._wake()


def _size_of(batch: Batch) -> int:
    return sum(len(event.data) for event in batch.events)
