"""How a running piece of work is told to stop, wherever it is."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from types import TracebackType
from typing import Self
from uuid import UUID

from redis import Redis

from foundation.redis import key


def cancel_channel() -> str:
    """Return the channel on which workers hear which generation is to stop."""
    return key(1, "cancel")


def announce(client: Redis, generation_id: UUID) -> None:
    """Wake the worker that writes this generation. The database has the flag; this only saves the wait for it."""
    client.publish(cancel_channel(), str(generation_id))


class Why(Enum):
    """Why a piece of work is stopped."""

    CANCELLED = auto()
    """Somebody pressed Stop, or nobody watches any more."""
    FENCED = auto()
    """Another attempt has taken over: write nothing more."""
    HANDED_OVER = auto()
    """This worker is going away: leave the work to another."""
    GAVE_WAY = auto()
    """A person waits for its place: leave the work for later."""


class Stopped(Exception):
    """Raised at the end of a `Cancellation` block that was stopped."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.name)
        self.why = why


class Cancellation:
    """A switch that stops one block of work: `async with cancellation: ...` raises `Stopped` when it is thrown.

    Works like `asyncio.timeout`: the block's task is cancelled, so whatever it awaits ends at once and closes what it
    holds. A request that came before the block stops it at its first await; one that comes after it changes nothing.
    The first reason stands, except that `FENCED` overrides. `gives_way` is set by work that may be interrupted for a
    person who waits.
    """

    def __init__(self) -> None:
        self.why: Why | None = None
        self.gives_way = False
        self._task: asyncio.Task[object] | None = None
        self._is_thrown = False
        self._cancelling_before = 0

    def request(self, why: Why) -> None:
        """Stop the block, now or as soon as it is entered."""
        if self.why is None or why is Why.FENCED:
            self.why = why
        self._throw()

    def _throw(self) -> None:
        if self._task is not None and not self._is_thrown:
            self._is_thrown = True
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling_before = self._task.cancelling()
        self._is_thrown = False
        if self.why is not None:
            self._throw()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self._is_thrown:
            return
        assert task is not None
        assert self.why is not None
        is_cancellation = kind is not None and issubclass(kind, asyncio.CancelledError)
        if task.uncancel() > self._cancelling_before:
            return  # the task itself is being cancelled as well: let that go on
        if not is_cancellation:
            # The request came with the block's last await behind it; the cancellation may have yet to be delivered.
            await self._swallow_pending_cancellation(task)
        if kind is None or is_cancellation:
            raise Stopped(self.why) from error

    async def _swallow_pending_cancellation(self, task: asyncio.Task[object]) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if task.cancelling() > self._cancelling_before:
                raise


class Cancellations:
    """The switches of all the work that one worker has in hand.

    A generation may be in hand twice for a moment, when its job was enqueued again or a later attempt began; each piece
    of work has a switch of its own, so that the end of one, or its fence, does not touch the other.
    """

    def __init__(self) -> None:
        self._in_hand: list[tuple[UUID, Cancellation]] = []

    @contextmanager
    def opened(self, generation_id: UUID) -> Iterator[Cancellation]:
        """Give the switch of a piece of work, for as long as that lasts."""
        entry = generation_id, Cancellation()
        self._in_hand.append(entry)
        try:
            yield entry[1]
        finally:
            self._in_hand.remove(entry)

    def request(self, generation_id: UUID, why: Why) -> None:
        """Stop a piece of work, if this worker has it."""
        for each, cancellation in self._in_hand:
            if each == generation_id:
                cancellation.request(why)

    def request_all(self, why: Why) -> None:
        for _, cancellation in self._in_hand:
            cancellation.request(why)
