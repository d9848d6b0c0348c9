"""How a running piece of work is told to stop, wherever it is."""

import asyncio
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


class Stopped(Exception):
    """Raised at the end of a `Cancellation` block that was stopped."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.name)
        self.why = why


class Cancellation:
    """A switch that stops one block of work: `async with cancellation: ...` raises `Stopped` when it is thrown.

    Works like `asyncio.timeout`: the block's task is cancelled, so whatever it awaits ends at once and closes what it
    holds. A request that came before the block stops it at its first await; one that comes after it changes nothing.
    The first reason stands, except that `FENCED` overrides.
    """

    def __init__(self) -> None:
        self.why: Why | None = None
        self._task: asyncio.Task[object] | None = None
        self._is_thrown = False

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
        if task.uncancel() > 0:
            return  # the task itself is being cancelled as well: let that go on
        if kind is None:
            # The request came with the block's last await behind it; the cancellation has yet to be delivered.
            await _swallow_pending_cancellation()
        if kind is None or issubclass(kind, asyncio.CancelledError):
            raise Stopped(self.why) from error


async def _swallow_pending_cancellation() -> None:
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return


class Cancellations:
    """The switches of all the work that one worker has in hand, by generation."""

    def __init__(self) -> None:
        self._by_generation: dict[UUID, Cancellation] = {}

    def open(self, generation_id: UUID) -> Cancellation:
        """Make the switch of a piece of work; `close` it at its end."""
        return self._by_generation.setdefault(generation_id, Cancellation())

    def close(self, generation_id: UUID) -> None:
        self._by_generation.pop(generation_id, None)

    def request(self, generation_id: UUID, why: Why) -> None:
        """Stop a piece of work, if this worker has it."""
        if cancellation := self._by_generation.get(generation_id):
            cancellation.request(why)

    def request_all(self, why: Why) -> None:
        for cancellation in list(self._by_generation.values()):
            cancellation.request(why)
