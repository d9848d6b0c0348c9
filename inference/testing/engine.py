"""The twin's slots: permits for all that is accepted, seats for what runs, a first-in-first-out queue between them."""

from collections import deque
from collections.abc import Callable


class Overloaded(Exception):
    """Every permit is taken."""


class Seat:
    """One accepted request. `begin` is called when it leaves the queue; not where it never had to wait."""

    def __init__(self, engine: "Engine", begin: Callable[[], None]) -> None:
        self._engine = engine
        self.begin = begin

    @property
    def is_running(self) -> bool:
        """Whether it holds a slot."""
        return self._engine.runs(self)

    def leave(self) -> None:
        """Free the permit and the slot; leaving twice changes nothing."""
        self._engine.release(self)


class Engine:
    """Counts what runs and what waits."""

    def __init__(self) -> None:
        self._running: set[Seat] = set()
        self._queue: deque[Seat] = deque()
        self.finished_count = 0

    @property
    def running_count(self) -> int:
        """Requests that hold a slot."""
        return len(self._running)

    @property
    def queued_count(self) -> int:
        """Requests that wait for one."""
        return len(self._queue)

    def runs(self, seat: Seat) -> bool:
        """Whether the seat has a slot."""
        return seat in self._running

    def admit(self, begin: Callable[[], None], *, permits: int, batch_size: int | None) -> Seat:
        """Take a permit, or raise `Overloaded`; then run at once or wait in line."""
        if self.running_count + self.queued_count >= permits:
            raise Overloaded
        seat = Seat(self, begin)
        if batch_size is None or self.running_count < batch_size:
            self._running.add(seat)
        else:
            self._queue.append(seat)
        return seat

    def release(self, seat: Seat) -> None:
        """Give the seat's place to the next in line."""
        if seat in self._queue:
            self._queue.remove(seat)
        elif seat in self._running:
            self._running.remove(seat)
            self.finished_count += 1
            if self._queue:
                heir = self._queue.popleft()
                self._running.add(heir)
                heir.begin()
