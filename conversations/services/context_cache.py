"""The history of active conversations, kept in Redis between two messages: losing it costs one statement.

An entry belongs to one owner's conversation and to the conversation's version; one that does not agree with both is not
used. It serves for the message after which it was made, and for those on the way there, as another answer needs them.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
import redis.asyncio
import structlog

from conversations.context.material import Said, Summarised
from conversations.services.history import History
from foundation.redis import REDIS_UNREACHABLE, key, shared_client
from inference import metrics

log = structlog.get_logger(__name__)

MOST_BYTES = 256 * 1024
"""Larger ones are not kept: the cache shares its memory with the live streams."""
_VERSION = 1
_PATIENCE_SECONDS = 0.25
"""PostgreSQL answers sooner than a cache that takes longer."""
_GONE_SECONDS = 600
"""How long a deleted conversation is known to be: far longer than an answer that had just ended takes to be kept."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a history ends: `tip` is its last message, `version` the conversation's `context_version`."""

    user_id: UUID
    conversation_id: UUID
    tip: UUID
    version: int


class ContextCache:
    """Finds and keeps histories for `keep_seconds`; with 0 it does neither."""

    def __init__(self, client: "redis.asyncio.Redis", keep_seconds: int) -> None:
        self._client = client
        self._keep_seconds = keep_seconds

    async def find(self, place: Place) -> History | None:
        """Return the history up to this place; `None` too where Redis is away, or slow."""
        if not self._keep_seconds:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                stored = await self._client.get(_key(place.conversation_id))
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("context_cache_unreachable", error=type(error).__name__)
            return None
        found, result = _read(stored, place) if isinstance(stored, bytes) else (None, "miss")
        metrics.CONTEXT_CACHE.labels(result).inc()
        return found

    async def keep(self, place: Place, history: History) -> None:
        """Keep a history, unless it is large, or its conversation was deleted. One that cannot be kept is no loss."""
        if not self._keep_seconds:
            return
        value = orjson.dumps({"place": place, "history": history})
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                if len(value) > MOST_BYTES or not await self._set(place.conversation_id, value):
                    await self._client.unlink(_key(place.conversation_id))
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("context_not_kept", error=type(error).__name__)

    async def _set(self, conversation_id: UUID, value: bytes) -> bool:
        """Store a value, and say whether it may stay: whoever deleted the conversation has said so, or finds it."""
        pipeline = self._client.pipeline(transaction=True)
        pipeline.set(_key(conversation_id), value, ex=self._keep_seconds)
        pipeline.exists(_gone_key(conversation_id))
        _, is_gone = await pipeline.execute()
        return not is_gone


def forget(conversation_id: UUID) -> None:
    """Take a deleted conversation's entry away, from synchronous code; no answer that has just ended brings it back.

    Where Redis is away it goes when its time is over.
    """
    try:
        forget_in(shared_client(), conversation_id)
    except REDIS_UNREACHABLE as error:
        log.warning("context_not_forgotten", error=type(error).__name__)


def forget_in(client: redis.Redis, conversation_id: UUID) -> None:
    """Do the same; raises one of `REDIS_UNREACHABLE`."""
    pipeline = client.pipeline(transaction=True)
    pipeline.set(_gone_key(conversation_id), b"", ex=_GONE_SECONDS)
    pipeline.unlink(_key(conversation_id))
    pipeline.execute()


def _key(conversation_id: UUID) -> str:
    return key(_VERSION, "context", conversation_id)


def _gone_key(conversation_id: UUID) -> str:
    return key(_VERSION, "context-gone", conversation_id)


def _read(stored: bytes, place: Place) -> tuple[History | None, str]:
    """Return the history if it is this place's, and what to call that."""
    try:
        entry = orjson.loads(stored)
        made_at = Place(**{name: _as_id(name, value) for name, value in entry["place"].items()})
        history = _history(entry["history"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("context_cache_unreadable", error=type(error).__name__)
        return None, "miss"
    if (made_at.user_id, made_at.conversation_id) != (place.user_id, place.conversation_id):
        log.error("context_cache_foreign", conversation_id=str(place.conversation_id))
        return None, "miss"
    up_to_tip = _up_to(history, place.tip) if made_at.version == place.version else None
    return up_to_tip, "hit" if up_to_tip else "stale"


def _up_to(history: History, tip: UUID) -> History | None:
    """Return the history that ends with `tip`, `None` where that is not in it."""
    ids = [each.message_id for each in history.said]
    if tip not in ids:
        return None
    end = ids.index(tip) + 1
    if end <= history.head_count:
        return History(history.said[:end])
    later = set(ids[end:])
    summaries = tuple(each for each in history.summaries if each.covers_up_to not in later)
    return replace(history, said=history.said[:end], summaries=summaries)


def _as_id(name: str, value: Any) -> Any:
    return value if name == "version" else UUID(value)


def _history(stored: dict[str, Any]) -> History:
    return History(
        said=tuple(
            Said(
                UUID(each["message_id"]),
                each["role"],
                each["content"],
                each["token_counts"],
                tuple(each["passages"]),
            )
            for each in stored["said"]
        ),
        head_count=stored["head_count"],
        unread_messages=stored["unread_messages"],
        summaries=tuple(
            Summarised(UUID(each["summary_id"]), each["epoch"], each["text"], UUID(each["covers_up_to"]))
            for each in stored["summaries"]
        ),
    )
