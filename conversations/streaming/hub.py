"""Brings the announcements of token streams to the readers of one web process, over one Redis connection.

Readers of the same generation share a `Feed`. An announcement is a hint and the row is the truth: the hub looks after
feeds that have been quiet, so that a reader gets its end even if the one that was announced was lost.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog

from conversations.broadcasts import credentials_channel
from conversations.models import Message
from conversations.streaming import presence
from conversations.streaming.announcements import Announcements
from conversations.streaming.grace import GraceTimes
from conversations.streaming.joining import Joining
from conversations.streaming.openings import Openings
from conversations.streaming.places import Places
from conversations.streaming.reader import Reader
from conversations.streaming.snapshot import Snapshot, statuses
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE, connect_async
from inference import token_stream
from inference.positions import BEGINNING, Position
from inference.queue import Place
from inference.token_stream import StreamedEvent

log = structlog.get_logger(__name__)

_TICK_SECONDS = 0.5
_QUIET_SECONDS = 2.5
_RETRY_SECONDS = 0.3
_SUBSCRIBE_SECONDS = 3.0
_MOST_LOOKED_AT_ONCE = 200
_BEYOND_ALL = Position(sys.maxsize, 0)


@dataclass(slots=True)
class Feed:
    """One generation's readers in this process, and the last position that was announced to them."""

    generation_id: UUID
    is_background: bool
    readers: set[Reader] = field(default_factory=set)
    is_subscribed: asyncio.Event = field(default_factory=asyncio.Event)
    is_interrupted: bool = False
    announced: Position = BEGINNING
    look_at: float = 0.0

    def look_again(self) -> None:
        for reader in self.readers:
            reader.look_again()

    def tell_place(self, place: Place) -> None:
        for reader in self.readers:
            reader.tell_place(place)


class Hub:
    """All feeds of one event loop."""

    def __init__(self) -> None:
        self.client = connect_async()
        self.openings = Openings()
        self._credentials_channel = credentials_channel().encode()
        self._watcher = presence.new_watcher()
        self._grace = GraceTimes(self.client, self._watcher)
        self._places = Places(self.client)
        self._joining = Joining(self.client, self._watcher)
        self._feeds: dict[UUID, Feed] = {}
        self._by_channel: dict[bytes, Feed] = {}
        self._left: set[UUID] = set()
        self._announcements = Announcements(self.client, on_subscribed=self._on_subscribed, on_message=self._on_message)
        self._tasks: list[asyncio.Task[None]] = []
        self._renewed_at = 0.0

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._listen_for_ever(), name="hub listens"),
            asyncio.create_task(self._look_after_for_ever(), name="hub looks after"),
            asyncio.create_task(self._places.tell_for_ever(), name="hub tells places"),
            asyncio.create_task(self.openings.look_for_ever(), name="hub looks at credentials"),
        ]

    async def close(self) -> None:
        """Stop everything; readers that are left see no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._grace.close()
        await self._joining.close()
        await self.client.aclose()

    @asynccontextmanager
    async def reading(self, snapshot: Snapshot, *, after: Position = BEGINNING) -> AsyncIterator[Reader]:
        """Attach a reader who has what stands before a position.

        When the last one of all processes leaves, the generation has its grace time to live.
        """
        feed = self._feeds.get(snapshot.generation_id)
        if feed is None:
            feed = self._open_feed(snapshot)
        reader = Reader()
        feed.readers.add(reader)
        self._grace.end(feed.generation_id)
        if snapshot.status == Message.Status.QUEUED:
            # Anew for each reader: the place was told to those who came before.
            self._places.forget(feed.generation_id)
            self._places.watch(feed.generation_id, feed.tell_place)
        try:
            reader.missed = await self._join(feed, after)
            yield reader
        finally:
            reader.close()
            feed.readers.discard(reader)
            if not feed.readers:
                self._close_feed(feed)
                if not reader.has_seen_the_end and not feed.is_background:
                    self._grace.begin(feed.generation_id)

    def _open_feed(self, snapshot: Snapshot) -> Feed:
        feed = Feed(snapshot.generation_id, snapshot.is_background, look_at=time.monotonic() + _TICK_SECONDS)
        self._feeds[feed.generation_id] = feed
        self._by_channel[token_stream.channel(feed.generation_id).encode()] = feed
        return feed

    def _close_feed(self, feed: Feed) -> None:
        self._feeds.pop(feed.generation_id, None)
        self._by_channel.pop(token_stream.channel(feed.generation_id).encode(), None)
        self._places.forget(feed.generation_id)
        self._left.add(feed.generation_id)

    async def _join(self, feed: Feed, after: Position) -> Sequence[StreamedEvent] | None:
        """Return what was published by the time when announcements arrive.

        If they cannot arrive yet, the reader starts from what is stored, and is told.
        """
        if not feed.is_subscribed.is_set():
            self._announcements.subscribe([token_stream.channel(feed.generation_id)])
        try:
            async with asyncio.timeout(_SUBSCRIBE_SECONDS):
                await feed.is_subscribed.wait()
                return await self._joining.join(feed.generation_id, after)
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("subscribe_failed", error=type(error).__name__)
        return None

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                await self._announcements.listen(self._on_connected)
            except REDIS_UNREACHABLE as error:
                log.warning("token_streams_unreachable", error=type(error).__name__)
            except Exception:
                # Every reader of this process hears through here: a fault is told, and the connection made anew.
                log.exception("listening_failed")
            await asyncio.sleep(_RETRY_SECONDS)

    def _on_connected(self) -> None:
        # A Redis that was away may have forgotten who watches.
        self._renewed_at = 0.0
        for feed in self._feeds.values():
            feed.is_interrupted = True
        channels = (token_stream.channel(generation_id) for generation_id in self._feeds)
        self._announcements.subscribe([credentials_channel(), *channels])

    def _on_subscribed(self, channel: bytes) -> None:
        feed = self._by_channel.get(channel)
        if feed is None:
            return
        feed.is_subscribed.set()
        if feed.is_interrupted:
            feed.is_interrupted = False
            feed.look_again()

    def _on_message(self, channel: bytes, data: bytes) -> None:
        if feed := self._by_channel.get(channel):
            self._announce(feed, data)
        elif channel == self._credentials_channel:
            self.openings.look_soon()

    def _announce(self, feed: Feed, data: bytes) -> None:
        feed.look_at = time.monotonic() + _QUIET_SECONDS
        if data == token_stream.ROW_CHANGED:
            feed.look_again()
            return
        batch = token_stream.decode_batch(data)
        feed.announced = batch.events[-1].position
        for reader in feed.readers:
            reader.offer(batch)

    async def _look_after_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            for look_after in (self._look_at_quiet_feeds, self._unsubscribe_left, self._renew_presence):
                try:
                    await look_after()
                except (*REDIS_UNREACHABLE, *DATABASE_UNREACHABLE) as error:
                    log.warning("look_after_failed", work=look_after.__name__, error=type(error).__name__)
                except Exception:
                    log.exception("look_after_failed", work=look_after.__name__)

    async def _renew_presence(self) -> None:
        if self._feeds and time.monotonic() - self._renewed_at > presence.RENEW_SECONDS:
            await presence.watch(self.client, self._watcher, list(self._feeds))
            self._renewed_at = time.monotonic()

    async def _unsubscribe_left(self) -> None:
        """Give up the channels of generations whose last reader has left, unless a new one has come."""
        left = [token_stream.channel(generation_id) for generation_id in self._left if generation_id not in self._feeds]
        self._left.clear()
        self._announcements.unsubscribe(left)

    async def _look_at_quiet_feeds(self) -> None:
        if not self._quiet_feeds():
            return
        # An event loop that was late has yet to hear what was announced meanwhile: none is quiet before it has.
        await self._announcements.catch_up()
        quiet = self._quiet_feeds()[:_MOST_LOOKED_AT_ONCE]
        for feed in quiet:
            feed.look_at = time.monotonic() + _QUIET_SECONDS
        found = await in_database(statuses, [feed.generation_id for feed in quiet])
        reached = await self._reached(quiet)
        for feed, position in zip(quiet, reached, strict=True):
            status = found.get(feed.generation_id)
            if status == Message.Status.QUEUED:
                self._places.watch(feed.generation_id, feed.tell_place)
            elif status != Message.Status.RUNNING or position > feed.announced:
                feed.look_again()

    def _quiet_feeds(self) -> list[Feed]:
        """Return the feeds of which nothing was heard for a while, the longest silent first."""
        now = time.monotonic()
        return sorted((feed for feed in self._feeds.values() if now > feed.look_at), key=lambda feed: feed.look_at)

    async def _reached(self, feeds: list[Feed]) -> list[Position]:
        """Return how far each stream has come; if Redis cannot say, further: what is stored tells more."""
        try:
            return await token_stream.last_positions(self.client, [feed.generation_id for feed in feeds])
        except REDIS_UNREACHABLE:
            return [_BEYOND_ALL] * len(feeds)


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


def current_hub() -> Hub:
    """Return the running event loop's hub, started at its first use."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
        hub.start()
    return hub


async def close_hub() -> None:
    """Close the running event loop's hub, if it has one."""
    if hub := _hubs.pop(asyncio.get_running_loop(), None):
        await hub.close()
