"""One reader's share of a feed: what was announced and not yet taken, within bounds."""

import asyncio
from collections import deque
from dataclasses import dataclass

from inference.queue import Place
from inference.token_stream import Batch

MOST_PENDING_BYTES = 256 * 1024
"""More than this is dropped for a reader that is slow; it reads from the token stream again when it gets to it."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Something may have been missed: read the token stream, or the database, from the reader's position on."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The generation waits in the queue."""

    place: Place


class Reader:
    """Takes announcements without ever blocking the one who delivers them."""

    def __init__(self) -> None:
        self._pending: deque[Batch | LookAgain | Waiting] = deque()
        self._pending_bytes = 0
        self._changed = asyncio.Event()
        self.has_seen_the_end = False
        """Set by whoever reads, once `done` has come: leaving then starts no grace time."""

    def offer(self, batch: Batch) -> None:
        """Keep a batch for the reader; if it has too many already, only the fact that there is more."""
        size = sum(len(event.data) for event in batch.events)
        if self._pending_bytes + size > MOST_PENDING_BYTES:
            self.look_again()
            return
        self._pending_bytes += size
        self._push(batch)

    def look_again(self) -> None:
        """Have the reader read from its position on."""
        self._pending.clear()
        self._pending_bytes = 0
        self._push(LookAgain())

    def tell_place(self, place: Place) -> None:
        self._push(Waiting(place))

    def _push(self, what: Batch | LookAgain | Waiting) -> None:
        self._pending.append(what)
        self._changed.set()

    async def next(self, timeout_seconds: float) -> Batch | LookAgain | Waiting | None:
        """Return what came next; `None` if nothing came in time."""
        if not self._pending:
            self._changed.clear()
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait()
            except TimeoutError:
                return None
        what = self._pending.popleft()
        if isinstance(what, Batch):
            self._pending_bytes -= sum(len(event.data) for event in what.events)
        return what
