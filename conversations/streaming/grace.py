"""The grace time: a generation that nobody watches any more is stopped, unless somebody comes back in time."""

import asyncio
from uuid import UUID

import redis.asyncio
import structlog
from django.conf import settings

from conversations.models import Message
from conversations.services.generations import request_cancel
from conversations.streaming import presence
from conversations.streaming.snapshot import statuses
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)


class GraceTimes:
    """The clocks that this process keeps. Each runs on its own: the connection that left is being torn down.

    If this process dies, nobody stops what its readers watched: they did not leave, they were cut off, and may return.
    """

    def __init__(self, client: "redis.asyncio.Redis", watcher: str) -> None:
        self._client = client
        self._watcher = watcher
        self._clocks: dict[UUID, asyncio.Task[None]] = {}

    def begin(self, generation_id: UUID) -> None:
        """Start the clock: the last reader of this process has left."""
        self.end(generation_id)
        clock = asyncio.create_task(self._run_out(generation_id), name=f"grace {generation_id}")
        self._clocks[generation_id] = clock
        clock.add_done_callback(lambda clock: self._forget(generation_id, clock))

    def end(self, generation_id: UUID) -> None:
        """Stop the clock: somebody watches again."""
        if clock := self._clocks.pop(generation_id, None):
            clock.cancel()

    async def close(self) -> None:
        """Stop all clocks."""
        clocks = list(self._clocks.values())
        for clock in clocks:
            clock.cancel()
        await asyncio.gather(*clocks, return_exceptions=True)

    def _forget(self, generation_id: UUID, clock: asyncio.Task[None]) -> None:
        if self._clocks.get(generation_id) is clock:
            del self._clocks[generation_id]
        if not clock.cancelled() and (error := clock.exception()):
            log.error("grace_failed", generation_id=str(generation_id), error=repr(error))

    async def _run_out(self, generation_id: UUID) -> None:
        try:
            await presence.leave(self._client, self._watcher, generation_id)
            await asyncio.sleep(settings.GRACE_SECONDS)
            status = (await in_database(statuses, [generation_id])).get(generation_id)
            if status in Message.UNDER_WAY and not await presence.is_watched(self._client, generation_id):
                log.info("nobody_watches", generation_id=str(generation_id))
                await in_database(request_cancel, generation_id)
        except (*REDIS_UNREACHABLE, *DATABASE_UNREACHABLE) as error:
            # Who watches cannot be told: a generation too much is better than one stopped under its reader's eyes.
            log.warning("grace_skipped", generation_id=str(generation_id), error=type(error).__name__)
