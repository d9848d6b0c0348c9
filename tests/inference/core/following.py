"""Writing and reading generations as the worker and the web tier do."""

import asyncio
from contextlib import aclosing, asynccontextmanager

from conversations.models import Message
from conversations.services import attempts
from conversations.services.attempts import LiveText
from conversations.services.outcomes import Outcome, done_event
from conversations.streaming.follow import KeepAlive, follow
from foundation.database import in_database
from foundation.redis import connect_async
from inference.positions import BEGINNING
from inference.publisher import Publisher
from tests.inference.core.factories import make_attempt, read_snapshot

KEEP_SECONDS = 600


class WrittenReply:
    """One attempt: its writer, its checkpoints and its end."""

    def __init__(self, publisher, attempt):
        self.publisher = publisher
        self.attempt = attempt
        self.generation_id = attempt.generation_id
        self.writer = publisher.writer(attempt.generation_id, attempt.number)

    async def write(self, text):
        self.writer.write_text(text)
        assert await self.publisher.drain(self.writer, 10)

    async def checkpoint(self):
        live = LiveText(self.generation_id, self.attempt.number, self.writer.text)
        await in_database(attempts.checkpoint, [live])

    @property
    def outcome(self):
        return Outcome(
            status=Message.Status.COMPLETE,
            finish_reason="stop",
            content=self.writer.text,
            tokens_in=1,
            tokens_out=2,
        )

    async def store_the_end(self):
        assert await in_database(attempts.finish, self.attempt, self.outcome)

    async def end(self):
        await self.store_the_end()
        self.writer.write_end(None, done_event(self.generation_id, self.outcome))
        assert await self.publisher.drain(self.writer, 10)


@asynccontextmanager
async def written_reply(**fields):
    """Make a generation, claim it and write it."""
    async with connect_async() as client, Publisher(client, KEEP_SECONDS) as publisher:
        yield WrittenReply(publisher, await in_database(make_attempt, **fields))


class Follower:
    """Reads a generation in a task of its own and keeps every event."""

    def __init__(self):
        self.events = []
        self.task = None

    @property
    def text(self):
        return "".join(event.text for event in self.events)

    @property
    def types(self):
        return [event.type for event in self.events]

    async def read(self, snapshot, after):
        async with aclosing(follow(snapshot, after=after)) as events:
            async for event in events:
                if not isinstance(event, KeepAlive):
                    self.events.append(event)

    async def end(self, seconds=20):
        async with asyncio.timeout(seconds):
            await self.task
        ids = [event.position.event_id for event in self.events]
        assert ids == sorted(set(ids))
        return self


@asynccontextmanager
async def follower(generation_id, after=BEGINNING):
    """Follow a generation until the block ends."""
    snapshot = await in_database(read_snapshot, generation_id)
    reader = Follower()
    reader.task = asyncio.create_task(reader.read(snapshot, after))
    try:
        yield reader
    finally:
        reader.task.cancel()
        await asyncio.wait([reader.task])
