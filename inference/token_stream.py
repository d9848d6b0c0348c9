"""The live text of generations, in Redis: written by one worker at a time, read by any number of web processes.

Per generation there is a Redis stream of events, whose entry ids are positions, and a small hash: the highest `attempt`
that has written (a lower one is refused: the fence), and the `last` position. Each publish appends to the stream and
tells those who listen, in one script, so that a listener who has replayed the stream misses nothing.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import redis.asyncio
from redis import Redis

from foundation.redis import key
from inference.positions import BEGINNING, Position

PUBLISH = """
local held = redis.call('HMGET', KEYS[2], 'attempt', 'last')
local attempt = tonumber(ARGV[1])
if held[1] and tonumber(held[1]) > attempt then return 'fenced' end
local last = held[2] or '0-0'
local is_whole = ARGV[2] == '0-0'
local first = (last == ARGV[2] or is_whole) and 6
for i = 6, #ARGV, 3 do if ARGV[i] == last then first = i + 3 end end
if not first then return 'gap' end
if first == 6 and is_whole then redis.call('DEL', KEYS[1]) end
if first < #ARGV then
  for i = first, #ARGV, 3 do redis.call('XADD', KEYS[1], ARGV[i], 't', ARGV[i + 1], 'd', ARGV[i + 2]) end
  redis.call('PUBLISH', ARGV[4], ARGV[5])
end
redis.call('HSET', KEYS[2], 'attempt', attempt, 'last', ARGV[#ARGV - 2])
if ARGV[3] ~= '0' then
  redis.call('EXPIRE', KEYS[1], ARGV[3])
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
return 'ok'
"""
"""ARGV: attempt, last position that this attempt knows, seconds to keep (0: as long as before), channel, message, then
id, type, data of each event. Events that an earlier call has brought, though its reply was lost, are left out. `gap`
says that the stream holds something else than what the writer believes: it was lost. A batch from the beginning
replaces what is there."""

_BEGIN = """
local held = tonumber(redis.call('HGET', KEYS[2], 'attempt') or '0')
if held > tonumber(ARGV[1]) then return false end
redis.call('HSET', KEYS[2], 'attempt', ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return redis.call('XRANGE', KEYS[1], '-', '+')
"""

_FORGET = """
redis.call('DEL', KEYS[1])
if redis.call('HGET', KEYS[2], 'attempt') ~= ARGV[1] then redis.call('DEL', KEYS[2]) end
"""

ROW_CHANGED = b""
"""An announcement without a batch: look at the database."""

_NO_ATTEMPT = 2**31 - 1
"""The fence of a stream to which nobody may publish any more."""
_VERSION = 1
_REPLAY_COUNT = 500


class StreamedEvent(NamedTuple):
    """One event: where it stands, its type, and its JSON as clients get it."""

    position: Position
    type: str
    data: bytes

    @property
    def text(self) -> str:
        """The text of a `token` event; of any other, nothing."""
        return str(orjson.loads(self.data)["text"]) if self.type == "token" else ""


class Batch(NamedTuple):
    """Events that were published together, and the position right before the first of them."""

    previous: Position
    events: tuple[StreamedEvent, ...]


class Fenced(Exception):
    """A later attempt has taken over this generation."""


def token_event(begin: Position, text: str) -> StreamedEvent:
    """Return the event that carries this text from this position on."""
    data = orjson.dumps({"type": "token", "text": text})
    return StreamedEvent(begin.after_text(len(text.encode())), "token", data)


def channel(generation_id: UUID) -> str:
    """Return where a generation's batches are announced."""
    return key(_VERSION, "generation", generation_id)


def state_key(generation_id: UUID) -> str:
    """Return the hash with the fence, and who watches (`conversations.streaming.presence`)."""
    return key(_VERSION, "generation", generation_id, "state")


def events_key(generation_id: UUID) -> str:
    """Return the stream of events."""
    return key(_VERSION, "generation", generation_id, "events")


class Names(NamedTuple):
    """What one generation's stream is called in Redis; a writer makes them once."""

    events: str
    state: str
    channel: str

    @classmethod
    def of(cls, generation_id: UUID) -> "Names":
        return cls(events_key(generation_id), state_key(generation_id), channel(generation_id))


def encode_batch(batch: Batch) -> bytes:
    """Return the announcement: the previous position, then a line `id type json` per event."""
    previous, events = batch
    lines = [b"%d-%d" % previous]
    lines += [b"%d-%d %s %s" % (*position, kind.encode(), data) for position, kind, data in events]
    return b"\n".join(lines)


def decode_batch(message: bytes) -> Batch:
    """Read what `encode_batch` wrote."""
    previous, *lines = message.split(b"\n")
    return Batch(Position.from_redis(previous.decode()), tuple(map(_decode_line, lines)))


def _decode_line(line: bytes) -> StreamedEvent:
    entry_id, kind, data = line.split(b" ", 2)
    return StreamedEvent(Position.from_redis(entry_id.decode()), kind.decode(), data)


def announce_change(client: Redis, generation_id: UUID) -> None:
    """Tell those who follow that the generation's row has changed by other hands than a worker's."""
    client.publish(channel(generation_id), ROW_CHANGED)


def close_for_good(client: Redis, generation_ids: Sequence[UUID], keep_seconds: int) -> None:
    """Empty streams, and refuse for the next `keep_seconds` what any attempt still publishes to them."""
    pipeline = client.pipeline(transaction=True)
    for generation_id in generation_ids:
        names = Names.of(generation_id)
        pipeline.unlink(names.events, names.state)
        pipeline.hset(names.state, "attempt", str(_NO_ATTEMPT))
        pipeline.expire(names.state, keep_seconds)
    pipeline.execute()


def forget(client: Redis, generation_ids: Iterable[UUID]) -> None:
    """Delete streams; one that was closed for good stays closed."""
    pipeline = client.pipeline(transaction=False)
    for generation_id in generation_ids:
        names = Names.of(generation_id)
        pipeline.eval(_FORGET, 2, names.events, names.state, str(_NO_ATTEMPT))
    pipeline.execute()


def is_closed_for_good(attempt: bytes | None) -> bool:
    """Say whether this is the fence of a stream that was closed for good."""
    return attempt is not None and int(attempt) == _NO_ATTEMPT


def publish_arguments(names: Names, attempt: int, batch: Batch, keep_seconds: int) -> list[Any]:
    """Return the arguments with which `PUBLISH` publishes a batch; the script answers `ok`, `gap` or `fenced`.

    With `keep_seconds` 0 the stream is kept as long as it was to be before.
    """
    arguments: list[Any] = [2, names.events, names.state]
    arguments += [attempt, b"%d-%d" % batch.previous, keep_seconds, names.channel, encode_batch(batch)]
    for position, kind, data in batch.events:
        arguments += [b"%d-%d" % position, kind, data]
    return arguments


async def begin(
    client: "redis.asyncio.Redis", generation_id: UUID, attempt: int, keep_seconds: int
) -> list[StreamedEvent]:
    """Fence off every earlier attempt and return what they published. Raise `Fenced` if a later one is at work."""
    keys = [events_key(generation_id), state_key(generation_id)]
    entries = await client.eval(_BEGIN, 2, *keys, attempt, keep_seconds)
    if entries is None:
        raise Fenced
    return events_of(entries)


async def replay(
    client: "redis.asyncio.Redis", generation_id: UUID, after: Position = BEGINNING
) -> AsyncIterator[list[StreamedEvent]]:
    """Yield the stream's events after a position, in order, page by page; no page is empty."""
    start = after
    while True:
        name, begin = events_key(generation_id), f"({start.redis_id}"
        entries: Any = await client.xrange(name, min=begin, max="+", count=_REPLAY_COUNT)
        page = [_event_of_fields(entry_id, fields) for entry_id, fields in entries]
        if page:
            start = page[-1].position
            yield page
        if len(page) < _REPLAY_COUNT:
            return


async def last_positions(client: "redis.asyncio.Redis", generation_ids: Sequence[UUID]) -> list[Position]:
    """Return how far each stream has come, in one round trip; the beginning for one that holds nothing."""
    pipeline = client.pipeline(transaction=False)
    for generation_id in generation_ids:
        pipeline.hget(state_key(generation_id), "last")
    return [Position.from_redis(last.decode()) if last else BEGINNING for last in await pipeline.execute()]


def events_of(entries: Any) -> list[StreamedEvent]:
    """Return the events of what a script has read from a stream."""
    return [_event(entry_id, fields) for entry_id, fields in entries]


def _event(entry_id: bytes, fields: Sequence[bytes]) -> StreamedEvent:
    return _event_of_fields(entry_id, dict(zip(fields[::2], fields[1::2], strict=True)))


def _event_of_fields(entry_id: bytes, fields: dict[bytes, bytes]) -> StreamedEvent:
    return StreamedEvent(Position.from_redis(entry_id.decode()), fields[b"t"].decode(), fields[b"d"])
