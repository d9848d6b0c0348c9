"""The connection over which a web process hears: nothing is taken for silence that has only not been read yet."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from conversations.streaming.announcements import Announcements
from conversations.streaming.hub import close_hub, current_hub
from conversations.streaming.reader import LookAgain
from foundation.database import in_database
from foundation.redis import REDIS_UNREACHABLE, connect_async
from inference import token_stream
from inference.positions import BEGINNING
from inference.token_stream import Batch, encode_batch, token_event
from tests.inference.core.factories import make_attempt, read_snapshot
from tests.inference.core.waiting import until


class Listener:
    """Announcements, and what came of them."""

    def __init__(self, client):
        self.subscribed, self.heard, self.ends = [], [], []
        self.announcements = Announcements(
            client,
            on_subscribed=self.subscribed.append,
            on_message=lambda channel, data: self.heard.append((channel, data)),
            patience_seconds=0.2,
        )

    async def listen(self):
        try:
            await self.announcements.listen(lambda: self.announcements.subscribe(["one", "other"]))
        except REDIS_UNREACHABLE as error:
            self.ends.append(error)


@asynccontextmanager
async def listening(client):
    listener = Listener(client)
    task = asyncio.create_task(listener.listen())
    await until(lambda: len(listener.subscribed) == 2)
    yield listener
    task.cancel()
    await asyncio.wait([task])


async def test_what_was_announced_by_then_is_delivered_when_it_has_caught_up(client, sync_client):
    async with listening(client) as listener:
        for number in range(500):
            sync_client.publish("one", str(number))
        sync_client.publish("nobody's", "not for us")
        assert await listener.announcements.catch_up()
        assert listener.heard == [(b"one", str(number).encode()) for number in range(500)]


async def test_what_is_left_is_not_heard_any_more(client, sync_client):
    async with listening(client) as listener:
        listener.announcements.unsubscribe(["one"])
        assert await listener.announcements.catch_up()
        sync_client.publish("one", "gone")
        sync_client.publish("other", "here")
        assert await listener.announcements.catch_up()
        assert listener.heard == [(b"other", b"here")]


async def test_a_connection_that_redis_closes_ends_the_listening(own_valkey):
    async with connect_async() as client, listening(client) as listener:
        own_valkey.command("CLIENT", "KILL", "TYPE", "pubsub")
        await until(lambda: listener.ends)
        assert not await listener.announcements.catch_up()


async def test_a_connection_over_which_nothing_comes_is_given_up(own_valkey):
    async with connect_async() as client, listening(client) as listener:
        own_valkey.command("CLIENT", "PAUSE", "1000", "ALL")
        assert not await listener.announcements.catch_up()
        await until(lambda: listener.ends)


@pytest_asyncio.fixture
async def hub():
    yield current_hub()
    await close_hub()


@pytest.mark.django_db(transaction=True)
async def test_a_late_event_loop_takes_no_feed_for_quiet(hub, sync_client):
    attempt = await in_database(make_attempt)
    snapshot = await in_database(read_snapshot, attempt.generation_id)
    async with hub.reading(snapshot) as reader:
        event = token_event(BEGINNING, "text")
        # The stream is ahead of what was heard, which is what one looks like whose announcement was lost.
        sync_client.hset(token_stream.state_key(snapshot.generation_id), "last", event.position.redis_id)
        sync_client.publish(token_stream.channel(snapshot.generation_id), encode_batch(Batch(BEGINNING, (event,))))
        hub._feeds[snapshot.generation_id].look_at = 0.0
        await hub._look_at_quiet_feeds()
        assert isinstance(await reader.next(0), Batch)
        assert await reader.next(0) is None
        hub._feeds[snapshot.generation_id].announced = BEGINNING
        hub._feeds[snapshot.generation_id].look_at = 0.0
        await hub._look_at_quiet_feeds()
        assert await reader.next(0) == LookAgain()
