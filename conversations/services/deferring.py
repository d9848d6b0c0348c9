"""Leaves work to Celery from an event loop, which never waits. What is lost with the broker, sweeps find again."""

import queue
import threading
import time
from types import TracebackType
from typing import Self
from uuid import UUID

import structlog
from celery import Celery, current_app

from foundation.background import send_task

log = structlog.get_logger(__name__)

LOOK_AFTER = "conversations.tasks.look_after_answer"
SETTLE = "conversations.tasks.settle_errand"

_MOST_WAITING = 1000
_REST_SECONDS = 10.0
"""How long a broker that was away is not tried again: each try takes seconds."""
_GOODBYE_SECONDS = 2.0

type _Task = tuple[str, UUID]


class Deferring:
    """Sends tasks from a thread of its own, for as long as the block lasts; it ends soon, though the broker hangs."""

    def __init__(self, app: Celery = current_app) -> None:
        self._app = app
        self._waiting: queue.Queue[_Task | None] = queue.Queue(_MOST_WAITING)
        self._rests_until = 0.0
        self._thread = threading.Thread(target=self._send_for_ever, name="deferring", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._put(None)
        self._thread.join(_GOODBYE_SECONDS)

    async def look_after(self, generation_id: UUID) -> None:
        """Have an answer that has ended looked after."""
        self._put((LOOK_AFTER, generation_id))

    async def settle(self, errand_id: UUID) -> None:
        """Have what was written for an errand settled."""
        self._put((SETTLE, errand_id))

    def _put(self, task: _Task | None) -> None:
        try:
            self._waiting.put_nowait(task)
        except queue.Full:
            log.warning("task_dropped")

    def _send_for_ever(self) -> None:
        while (task := self._waiting.get()) is not None:
            if time.monotonic() >= self._rests_until:
                self._send(*task)

    def _send(self, name: str, identifier: UUID) -> None:
        if not send_task(name, identifier, app=self._app):
            self._rests_until = time.monotonic() + _REST_SECONDS
