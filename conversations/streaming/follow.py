"""Follows one generation, from any event on: the same for every kind of client."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Self

import orjson
import structlog
from django.conf import settings

from accounts.quotas import Allowance
from conversations.streaming.hub import Hub, current_hub
from conversations.streaming.joining import MOST_EVENTS
from conversations.streaming.openings import Opening
from conversations.streaming.reader import Interrupted, LookAgain, Reader, Told, Waiting
from conversations.streaming.snapshot import Snapshot, snapshots
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE
from inference import token_stream
from inference.positions import BEGINNING, DONE_ORDINAL, FIRST_WORKER_ORDINAL, START_ORDINAL, Position, text_from
from inference.queue import Place
from inference.token_stream import Batch, StreamedEvent, token_event

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Nothing has happened for a while."""


KEEP_ALIVE = KeepAlive()

type Followed = StreamedEvent | KeepAlive


@dataclass(frozen=True, slots=True)
class Limits:
    """What the caller may still use, as the `start` event tells it; `None` where there is no such limit."""

    requests_remaining: int | None = None
    tokens_remaining: int | None = None

    @classmethod
    def within(cls, allowance: Allowance) -> Self:
        """Return what an allowance leaves."""
        return cls(allowance.requests_remaining, allowance.tokens_remaining)


async def follow(
    snapshot: Snapshot,
    *,
    after: Position = BEGINNING,
    limits: Limits | None = None,
    opening: Opening | None = None,
) -> AsyncGenerator[Followed]:
    """Yield every event after a position, once and in order, `done` last; `KEEP_ALIVE` where nothing happens for long.

    The owner of `snapshot` has been checked. Use it within `aclosing`: its end is what starts the grace time.
    """
    async with aclosing(follow_together(snapshot, after=after, limits=limits, opening=opening)) as together:
        async for events in together:
            for event in events:
                yield event


async def follow_together(
    snapshot: Snapshot,
    *,
    after: Position = BEGINNING,
    limits: Limits | None = None,
    opening: Opening | None = None,
) -> AsyncGenerator[Sequence[Followed]]:
    """Do what `follow` does, but yield together what is there at the same time.

    Subscribes first, then replays, then follows what is announced, so nothing falls between. Where the credential of
    `opening` is no longer good, an `error` is the last: the reader left, and the grace time begins.
    """
    state = _Followed(snapshot, after)
    if state.position < Position(0, START_ORDINAL):
        yield (state.start_event(limits or Limits()),)
    if snapshot.is_ended:
        for event in state.fresh(snapshot.events_after(state.position)):
            yield (event,)
        return
    hub = current_hub()
    async with hub.reading(snapshot, after=state.position) as reader, _interrupted_by(opening, reader):
        async for events in _begun(state, hub, reader, snapshot):
            reader.has_seen_the_end = state.is_ended
            yield events
        while not state.is_ended:
            what = await reader.next(settings.KEEP_ALIVE_SECONDS)
            if isinstance(what, Batch) and what.previous == state.position:
                # Nearly always: each token of each stream comes through here, so it takes no detour.
                together = state.take_with_next(what, reader)
                reader.has_seen_the_end = state.is_ended
                yield together
                continue
            if isinstance(what, Interrupted):
                assert opening is not None
                yield (state.refused_event(opening),)
                return
            async for followed in _sorted_out(state, hub, what):
                reader.has_seen_the_end = state.is_ended
                yield followed


@asynccontextmanager
async def _interrupted_by(opening: Opening | None, reader: Reader) -> AsyncIterator[None]:
    if opening is None:
        yield
        return
    opening.call_at_end(reader.interrupt)
    try:
        yield
    finally:
        opening.call_at_end(None)


async def _sorted_out(state: "_Followed", hub: Hub, what: Told | None) -> AsyncIterator[Sequence[Followed]]:
    if isinstance(what, Waiting):
        if event := state.queued_event(what.place):
            yield (event,)
    elif isinstance(what, Batch) and what.previous <= state.position:
        yield tuple(state.fresh(what.events))
    elif what is None:
        yield (KEEP_ALIVE,)
    else:
        assert isinstance(what, LookAgain | Batch)
        async for events in _replayed(state, hub):
            yield events


async def _begun(
    state: "_Followed", hub: Hub, reader: Reader, stored: Snapshot
) -> AsyncIterator[Sequence[StreamedEvent]]:
    """Yield what is there when a reader comes.

    What was `stored` a moment ago needs no second look: what has happened since, the hub finds out with its first one.
    """
    if reader.missed is None or len(reader.missed) >= MOST_EVENTS:
        async for events in _replayed(state, hub, stored=stored):
            yield events
    elif fresh := state.fresh_from_here(reader.missed):
        yield fresh
    else:
        for event in state.fresh(stored.events_after(state.position)):
            yield (event,)


async def _replayed(
    state: "_Followed", hub: Hub, *, stored: Snapshot | None = None
) -> AsyncIterator[Sequence[StreamedEvent]]:
    """Yield what the token stream holds beyond the reader's position; failing that, what the database holds.

    The database is asked too when the stream has no news: that it holds nothing may mean that it was lost.
    """
    before = state.position
    try:
        async for page in token_stream.replay(hub.client, state.snapshot.generation_id, state.position):
            fresh = state.fresh_from_here(page)
            if not fresh:
                break
            yield fresh
    except REDIS_UNREACHABLE as error:
        log.warning("replay_failed", error=type(error).__name__)
    if state.position != before:
        return
    if stored is not None:
        for event in state.fresh(stored.events_after(state.position)):
            yield (event,)
        return
    async for event in _from_database(state):
        yield (event,)


def _begin_of(event: StreamedEvent) -> int:
    return event.position.offset - len(event.text.encode())


async def _from_database(state: "_Followed") -> AsyncIterator[StreamedEvent]:
    try:
        found = await in_database(snapshots, [state.snapshot.generation_id])
    except DATABASE_UNREACHABLE as error:
        log.warning("snapshot_failed", error=type(error).__name__)
        return
    current = found.get(state.snapshot.generation_id)
    if current is None:
        yield state.deleted_event()
        yield state.done_without_row()
        return
    for event in state.fresh(current.events_after(state.position)):
        yield event


class _Followed:
    """What one reader has got so far."""

    def __init__(self, snapshot: Snapshot, after: Position) -> None:
        self.snapshot = snapshot
        self.position = after
        self.is_ended = after.ordinal == DONE_ORDINAL and snapshot.is_ended and after == snapshot.end

    def start_event(self, limits: Limits) -> StreamedEvent:
        data = {
            "type": "start",
            "generation_id": self.snapshot.generation_id,
            "conversation_id": self.snapshot.conversation_id,
            "user_message_id": self.snapshot.user_message_id,
            "message_id": self.snapshot.generation_id,
            "model": self.snapshot.model,
            "limits": limits,
        }
        return self._own(Position(0, START_ORDINAL), "start", data)

    def queued_event(self, place: Place) -> StreamedEvent | None:
        """Return the event that tells the place in the queue; nothing once a worker has begun."""
        position = Position(0, max(self.position.ordinal, START_ORDINAL) + 1)
        if self.position.offset or position.ordinal >= FIRST_WORKER_ORDINAL:
            return None
        deadline = self.snapshot.deadline.isoformat().replace("+00:00", "Z")
        data = {
            "type": "queued",
            "position": place.position,
            "deadline": deadline,
            "expected_wait_seconds": place.expected_wait_seconds,
        }
        return self._own(position, "queued", data)

    def deleted_event(self) -> StreamedEvent:
        data = {"type": "error", "code": "not_found", "message": "The conversation was deleted.", "retryable": False}
        return self._own(Position(self.position.offset, DONE_ORDINAL - 1), "error", data)

    def refused_event(self, opening: Opening) -> StreamedEvent:
        """Return the last event of a reader whose credential has ended, under the id of the one before it."""
        refusal = opening.refusal
        assert refusal is not None
        data = {"type": "error", "code": refusal.code, "message": refusal.message, "retryable": False}
        return self._own(self.position, "error", data)

    def done_without_row(self) -> StreamedEvent:
        self.is_ended = True
        data = {
            "type": "done",
            "message_id": self.snapshot.generation_id,
            "finish_reason": "error",
            "usage": {"in": 0, "cached": 0, "out": 0},
        }
        return self._own(Position(self.position.offset, DONE_ORDINAL), "done", data)

    def _own(self, position: Position, kind: str, data: dict[str, object]) -> StreamedEvent:
        self.position = max(self.position, position)
        return StreamedEvent(position, kind, orjson.dumps(data))

    def take_with_next(self, batch: Batch, reader: Reader) -> Sequence[StreamedEvent]:
        """Mark as got all of a batch that begins right where this reader is, and all that follows on it by now."""
        events = batch.events
        while (following := reader.next_after(events[-1].position)) is not None:
            events += following.events
        last = events[-1]
        self.position, self.is_ended = last.position, last.type == "done"
        return events

    def fresh_from_here(self, events: Sequence[StreamedEvent]) -> Sequence[StreamedEvent]:
        """Return what is fresh of the token stream's events; nothing where the text before them is lost there."""
        if not events or _begin_of(events[0]) > self.position.offset:
            return ()
        return tuple(self.fresh(events))

    def fresh(self, events: Iterable[StreamedEvent]) -> Iterator[StreamedEvent]:
        """Yield those of consecutive events that this reader has not got, and mark them as got.

        A token known in part is cut. The end is always new: a reader who is beyond it, because text was lost and
        written anew, ends as well.
        """
        reached: Position | None = None
        for event in events:
            begins_here = reached is not None and reached == self.position  # so that its text need not be measured
            reached = event.position
            if self.is_ended or (event.position <= self.position and event.type != "done"):
                continue
            is_known_in_part = not begins_here and event.type == "token" and _begin_of(event) < self.position.offset
            fresh = self._rest_of(event) if is_known_in_part else event
            self.position = event.position
            self.is_ended = event.type == "done"
            yield fresh

    def _rest_of(self, event: StreamedEvent) -> StreamedEvent:
        rest = text_from(event.text, self.position.offset - _begin_of(event))
        return token_event(Position(event.position.offset - len(rest.encode()), 0), rest)
