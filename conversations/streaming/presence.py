"""Who watches a generation, over all web processes: when the last one leaves, the grace time begins."""

import os
import secrets
import time
from typing import Any
from uuid import UUID

import redis.asyncio
from django.conf import settings

from inference.token_stream import state_key

VALID_SECONDS = 30
"""A web process that has not renewed its sign for so long is dead; what it watched goes on, its readers may return."""
RENEW_SECONDS = 10

WATCHED = "watched"
"""The mark that a reader has ever come."""


def new_watcher() -> str:
    """Return a name under which one web process says what it watches."""
    return f"watcher:{os.getpid()}-{secrets.token_hex(4)}"


async def watch(client: "redis.asyncio.Redis", watcher: str, generation_ids: list[UUID]) -> None:
    """Say that a process has readers of these generations, for the next `VALID_SECONDS`."""
    pipeline = client.pipeline(transaction=False)
    until = time.time() + VALID_SECONDS
    for generation_id in generation_ids:
        name = state_key(generation_id)
        pipeline.hset(name, mapping={watcher: until, WATCHED: 1})
        pipeline.expire(name, settings.STREAM_KEEP_SECONDS)
    await pipeline.execute()


async def leave(client: "redis.asyncio.Redis", watcher: str, generation_id: UUID) -> None:
    """Say that a process has no reader of a generation any more."""
    await client.hdel(state_key(generation_id), watcher)


async def is_watched(client: "redis.asyncio.Redis", generation_id: UUID) -> bool:
    """Say whether any web process has a reader of this generation."""
    held: Any = await client.hgetall(state_key(generation_id))
    now = time.time()
    return any(name.startswith(b"watcher:") and float(until) > now for name, until in held.items())


async def was_ever_watched(client: "redis.asyncio.Redis", generation_id: UUID) -> bool:
    """Say whether a reader has ever come."""
    return bool(await client.hexists(state_key(generation_id), WATCHED))
