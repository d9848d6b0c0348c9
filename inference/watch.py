"""One request under way at a model server, as others see it: whether it goes forward; and the means to abandon it."""

import asyncio
from collections.abc import Callable


class Watch:
    """Made by whoever sends the request, kept up by the client that reads the answer. Times are the event loop's.

    `prefill_seconds` is how much longer than usual its first token may take, because its prompt is long. One that
    `is_patient` was moved in vain before, and is left to wait.
    """

    __slots__ = (
        "_loop",
        "_stop",
        "frames",
        "is_abandoned",
        "is_patient",
        "prefill_seconds",
        "progressed_at",
        "sent_at",
    )

    def __init__(self, *, prefill_seconds: float = 0.0, is_patient: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop: Callable[[], None] | None = None
        self.prefill_seconds = prefill_seconds
        self.is_patient = is_patient
        self.is_abandoned = False
        self.sent_at = self._loop.time()
        self.progressed_at: float | None = None
        self.frames = 0

    @property
    def has_begun(self) -> bool:
        """Whether the server has said anything."""
        return self.progressed_at is not None

    def note_progress(self) -> None:
        """The server has said something; comments that keep a connection alive do not count."""
        self.progressed_at = self._loop.time()
        self.frames += 1

    def silent_seconds(self, now: float) -> float:
        """Return for how long the server has said nothing, but for the time that a long prompt may take."""
        if self.progressed_at is None:
            return now - self.sent_at - self.prefill_seconds
        return now - self.progressed_at

    def abandon(self) -> None:
        """Close the connection now, so that whoever reads from it gets `Stalled`."""
        self.is_abandoned = True
        if self._stop is not None:
            self._stop()

    def stop_with(self, stop: Callable[[], None] | None) -> None:
        """Say what closes the connection in its present state; `None` once there is nothing to close."""
        self._stop = stop
        if stop is not None and self.is_abandoned:
            stop()
