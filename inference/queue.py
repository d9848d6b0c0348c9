"""The queue of generations: a Redis stream per priority class, most urgent first, with ageing.

It is a hint, never the truth: whoever takes a job claims the generation in the database, and a sweeper enqueues again
what the queue has forgotten. So taking removes the entry at once, and enqueueing what already waits does nothing.
"""

from collections.abc import Iterable
from uuid import UUID

import redis.asyncio
from redis import Redis

from foundation.redis import key
from inference.jobs import PRIORITY_CLASSES, Job

AGEING_SECONDS = 15
"""A job that has waited this long counts as one class more urgent; twice as long, two."""

_ENQUEUE = """
local waiting = redis.call('HGET', KEYS[2], ARGV[1])
local place = waiting and string.match(waiting, ' (.+)$')
if place and #redis.call('XRANGE', KEYS[1], place, place) > 0 then return 0 end
local entry = redis.call('XADD', KEYS[1], '*', 'id', ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ' ' .. entry)
redis.call('PUBLISH', ARGV[3], '')
return 1
"""

_TAKE = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local best, best_rank, best_entry
for i = 2, #KEYS do
  local head = redis.call('XRANGE', KEYS[i], '-', '+', 'COUNT', 1)[1]
  if head then
    local waited = now - tonumber(string.match(head[1], '^(%d+)'))
    local rank = (i - 2) - math.floor(waited / tonumber(ARGV[1]))
    if not best or rank < best_rank then best, best_rank, best_entry = i, rank, head end
  end
end
if not best then return false end
redis.call('XDEL', KEYS[best], best_entry[1])
redis.call('HDEL', KEYS[1], best_entry[2][2])
return {best - 2, best_entry[2][2]}
"""

_POSITION = """
local waiting = redis.call('HGET', KEYS[1], ARGV[1])
if not waiting then return -1 end
local class, entry = string.match(waiting, '^(%d+) (.+)$')
if not class then return -1 end
local ahead = 0
for i = 0, tonumber(class) - 1 do ahead = ahead + redis.call('XLEN', KEYS[i + 2]) end
return ahead + #redis.call('XRANGE', KEYS[tonumber(class) + 2], '-', entry, 'COUNT', 10000)
"""

_VERSION = 1


def _waiting_key() -> str:
    return key(_VERSION, "queue", "waiting")


def _class_key(priority_class: str) -> str:
    return key(_VERSION, "queue", priority_class)


def _all_keys() -> list[str]:
    return [_waiting_key(), *map(_class_key, PRIORITY_CLASSES)]


def wake_channel() -> str:
    """Return the channel on which workers hear that something was enqueued."""
    return key(_VERSION, "queue", "wake")


def enqueue(client: Redis, jobs: Iterable[Job]) -> None:
    """Add the jobs that do not wait yet, in one round trip."""
    pipeline = client.pipeline(transaction=False)
    for job in jobs:
        rank = PRIORITY_CLASSES.index(job.priority_class)
        keys = [_class_key(job.priority_class), _waiting_key()]
        pipeline.eval(_ENQUEUE, len(keys), *keys, str(job.generation_id), str(rank), wake_channel())
    pipeline.execute()


async def take(client: "redis.asyncio.Redis") -> Job | None:
    """Remove and return the most urgent job, or `None` where nothing waits."""
    keys = _all_keys()
    found = await client.eval(_TAKE, len(keys), *keys, str(AGEING_SECONDS * 1000))
    if not found:
        return None
    rank, generation_id = found
    return Job(UUID(generation_id.decode()), PRIORITY_CLASSES[int(rank)])


async def position(client: "redis.asyncio.Redis", generation_id: UUID) -> int | None:
    """Return a waiting job's place, 1 for the next one; `None` for one that does not wait."""
    keys = _all_keys()
    place = int(await client.eval(_POSITION, len(keys), *keys, str(generation_id)))
    return place if place > 0 else None
