"""The replies that this worker has in hand: checkpoints them, renews their leases, hears of their ends elsewhere."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import redis.asyncio
import structlog
from django.conf import settings

from conversations.services import attempts, generations, requeueing
from conversations.services.attempts import Attempt, LiveText
from conversations.streaming import presence
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE
from inference.cancellation import Cancellation, Why
from inference.publisher import TokenStreamWriter

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class LiveReply:
    """A reply that is being written."""

    attempt: Attempt
    writer: TokenStreamWriter
    cancellation: Cancellation
    begun_at: float = field(default_factory=time.monotonic)
    first_token_at: datetime | None = None
    saved_characters: int = 0
    is_watched: bool = False

    def __post_init__(self) -> None:
        self.first_token_at = self.attempt.first_token_at

    def unsaved(self) -> LiveText:
        """Return what a checkpoint has to save."""
        text = self.writer.text
        news = text if len(text) > self.saved_characters else None
        return LiveText(self.attempt.generation_id, self.attempt.number, news, self.first_token_at)


class LiveReplies:
    """All replies of one worker."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._client = client
        self._by_generation: dict[UUID, LiveReply] = {}
        self._no_sweep_before = 0.0

    def add(self, reply: LiveReply) -> None:
        self._by_generation[reply.attempt.generation_id] = reply

    def remove(self, reply: LiveReply) -> None:
        if self._by_generation.get(reply.attempt.generation_id) is reply:
            del self._by_generation[reply.attempt.generation_id]

    async def checkpoint(self) -> None:
        """Save every text that has grown and renew every lease, in one statement. Stop what is no longer ours."""
        replies = list(self._by_generation.values())
        if not replies:
            return
        live = [reply.unsaved() for reply in replies]
        try:
            still_ours = await in_database(attempts.checkpoint, live)
        except DATABASE_UNREACHABLE as error:
            self._database_failed(error)
            return
        for reply, saved in zip(replies, live, strict=True):
            if saved.text is not None:
                reply.saved_characters = len(saved.text)
            if saved.generation_id not in still_ours:
                reply.cancellation.request(Why.FENCED)
            elif still_ours[saved.generation_id]:
                reply.cancellation.request(Why.CANCELLED)

    async def sweep(self) -> None:
        """Enqueue what no worker holds.

        After the database was away every lease has run out, though the workers live: they get the time to renew.
        """
        if time.monotonic() < self._no_sweep_before:
            return
        try:
            jobs = await in_database(requeueing.lost_jobs)
            if jobs:
                await in_database(generations.enqueue, jobs)
        except DATABASE_UNREACHABLE as error:
            self._database_failed(error)

    async def stop_unwatched(self) -> None:
        """Stop replies that nobody has ever begun to watch within the grace time."""
        now = time.monotonic()
        due = [
            reply
            for reply in self._by_generation.values()
            if not reply.is_watched
            and not reply.attempt.is_background
            and now - reply.begun_at > settings.GRACE_SECONDS
        ]
        for reply in due:
            try:
                reply.is_watched = await presence.was_ever_watched(self._client, reply.attempt.generation_id)
            except REDIS_UNREACHABLE:
                return
            if not reply.is_watched:
                log.info("nobody_watches", generation_id=str(reply.attempt.generation_id))
                reply.cancellation.request(Why.CANCELLED)

    def _database_failed(self, error: Exception) -> None:
        log.warning("database_unreachable", error=type(error).__name__)
        self._no_sweep_before = time.monotonic() + settings.LEASE_SECONDS
