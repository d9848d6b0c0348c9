"""Tells those who follow a message that waits for a model server where it stands, at once and whenever that changes."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import batched
from uuid import UUID

import redis.asyncio
import structlog

from foundation.redis import REDIS_UNREACHABLE
from inference import queue
from inference.queue import Place

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.2
"""Nearly every message is taken sooner: then nothing is said of a place."""
_PAUSE_SECONDS = 1.0
_MOST_LOOKED_AT_ONCE = 200


@dataclass(slots=True)
class _Waiting:
    tell: Callable[[Place], None]
    position: int = 0
    told_at: float = 0.0

    def hear(self, place: Place) -> None:
        """Tell a place that is a new one, but not all the time."""
        now = time.monotonic()
        if place.position != self.position and now - self.told_at >= _PAUSE_SECONDS:
            self.position, self.told_at = place.position, now
            self.tell(place)


class Places:
    """The generations of one process's readers that may wait in the queue."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._client = client
        self._waiting: dict[UUID, _Waiting] = {}

    def watch(self, generation_id: UUID, tell: Callable[[Place], None]) -> None:
        """Tell where this one stands, until it waits no more."""
        self._waiting.setdefault(generation_id, _Waiting(tell))

    def forget(self, generation_id: UUID) -> None:
        self._waiting.pop(generation_id, None)

    async def tell_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._tell()
            except REDIS_UNREACHABLE as error:
                log.warning("places_unknown", error=type(error).__name__)
            except Exception:
                log.exception("telling_places_failed")

    async def _tell(self) -> None:
        for some in batched(list(self._waiting), _MOST_LOOKED_AT_ONCE, strict=False):
            for generation_id, place in zip(some, await queue.places(self._client, some), strict=True):
                waiting = self._waiting.get(generation_id)
                if waiting is None:
                    continue
                if place is None:
                    self.forget(generation_id)
                else:
                    waiting.hear(place)
