"""Watches how punctual a process's event loop is: what blocks it holds up every answer that it carries."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from prometheus_client import Histogram

log = structlog.get_logger(__name__)

LAG = Histogram(
    "chat_event_loop_lag_seconds",
    "How much later than due a process's event loop ran what was due.",
    ["process"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
_EVERY_SECONDS = 0.1
_BLOCKED_SECONDS = 0.5
"""A lag that is worth a line in the log."""


@asynccontextmanager
async def watched(process: str) -> AsyncIterator[None]:
    """Measure the lag of the running loop while the block lasts, ten times a second."""
    watching = asyncio.create_task(_watch(process), name="event loop watch")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(process: str) -> None:
    lag = LAG.labels(process)
    while True:
        due = time.monotonic() + _EVERY_SECONDS
        await asyncio.sleep(_EVERY_SECONDS)
        late_seconds = max(0.0, time.monotonic() - due)
        lag.observe(late_seconds)
        if late_seconds >= _BLOCKED_SECONDS:
            log.warning("event_loop_blocked", seconds=round(late_seconds, 3))
