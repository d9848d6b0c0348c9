"""How busy the server is: permits for requests that are in, seats for those that the engine works on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from inference.local_server.errors import OverloadedError


class Load:
    """Counts requests. A permit is taken or refused at once; a seat is waited for in order of arrival."""

    def __init__(self, *, permits: int, seats: int) -> None:
        self._permits = permits
        self._seats = asyncio.Semaphore(seats)
        self.in_flight = 0
        self.waiting = 0
        self.running = 0
        self.reserved_tokens = 0

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Raises `OverloadedError` when all permits are in use."""
        if self.in_flight >= self._permits:
            raise OverloadedError
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    @asynccontextmanager
    async def seat(self, tokens: int) -> AsyncIterator[None]:
        """One of the engine's sequences, for a request that may fill `tokens` of its memory."""
        self.waiting += 1
        try:
            await self._seats.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        self.reserved_tokens += tokens
        try:
            yield
        finally:
            self.running -= 1
            self.reserved_tokens -= tokens
            self._seats.release()
