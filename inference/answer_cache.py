"""What a model has answered to a whole prompt before, kept in Redis for a while: off unless a site asks for it.

Whoever looks up or keeps an answer has made sure that nothing in the prompt is one user's own. `scope` names those
among whom an answer may be shared; nothing crosses from one scope to another. Redis may lose all: that costs time only.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
import redis.asyncio
import structlog
from redis import Redis

from foundation.redis import REDIS_UNREACHABLE, key
from inference import metrics
from inference.messages import ChatMessage, SamplingOptions
from inference.token_stream import is_closed_for_good, state_key

log = structlog.get_logger(__name__)

MOST_CHARACTERS = 32_768
"""Longer answers are not kept: they are the rare ones, and the cache shares its memory with the live streams."""
_VERSION = 1
_PATIENCE_SECONDS = 0.25
"""A cache that answers later than a model server would is of no use."""


@dataclass(frozen=True, slots=True)
class Source:
    """What answers: a version of the catalogue, and the model that its replicas say they serve."""

    version: str
    model_id: str
    revision: str


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A whole answer, which its model ended itself, with the tokens that were counted when it was written."""

    text: str
    tokens_in: int
    tokens_out: int
    model_version: str
    """As it was recorded."""


def digest_of(source: Source, messages: Sequence[ChatMessage], options: SamplingOptions, *, scope: str) -> str:
    """Return what an answer is known by: everything that it depends on, and among whom it may be shared."""
    parts = (scope, asdict(source), [message._asdict() for message in messages], asdict(options))
    return sha256(orjson.dumps(parts)).hexdigest()


class AnswerCache:
    """Finds and keeps answers for `keep_seconds`; with 0 it does neither."""

    def __init__(self, client: "redis.asyncio.Redis", keep_seconds: int) -> None:
        self._client = client
        self._keep_seconds = keep_seconds

    @property
    def is_on(self) -> bool:
        return self._keep_seconds > 0

    async def find(self, digest: str) -> KnownAnswer | None:
        """Return the answer of this digest; `None` too where Redis is away, or slow."""
        if not self.is_on:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                stored = await self._client.get(_key(digest))
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("answer_cache_unreachable", error=type(error).__name__)
            return None
        found = _decoded(stored) if isinstance(stored, bytes) else None
        metrics.CACHE_LOOKUPS.labels("miss" if found is None else "hit").inc()
        return found

    async def keep(self, digest: str, answer: KnownAnswer, *, written_for: UUID) -> None:
        """Keep an answer, unless it is empty or long. One that cannot be kept is no loss.

        It is forgotten with the generation that it was written for, and not kept if that is forgotten already.
        """
        if not self.is_on or not 0 < len(answer.text) <= MOST_CHARACTERS:
            return
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._set(digest, orjson.dumps(asdict(answer)), written_for)
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("answer_not_kept", error=type(error).__name__)

    async def _set(self, digest: str, value: bytes, written_for: UUID) -> None:
        """Store an answer and where it is from: whoever closes the generation's stream has done so, or finds it."""
        pipeline = self._client.pipeline(transaction=True)
        pipeline.set(_key(digest), value, ex=self._keep_seconds)
        pipeline.set(_origin_key(written_for), digest, ex=self._keep_seconds)
        pipeline.hget(state_key(written_for), "attempt")
        *_, attempt = await pipeline.execute()
        if is_closed_for_good(attempt):
            await self._client.unlink(_key(digest), _origin_key(written_for))


def forget(client: Redis, generation_ids: Sequence[UUID]) -> int:
    """Forget the answers that were written for these generations; return how many there were.

    Close their streams for good first: one that has just ended is then not kept any more.
    """
    if not generation_ids:
        return 0
    origins = [_origin_key(each) for each in generation_ids]
    digests: Any = client.mget(origins)
    names = [_key(digest.decode()) for digest in digests if digest is not None]
    client.unlink(*origins)
    return int(client.unlink(*names)) if names else 0


def _key(digest: str) -> str:
    return key(_VERSION, "answer", digest)


def _origin_key(generation_id: UUID) -> str:
    return key(_VERSION, "cached-for", generation_id)


def _decoded(stored: bytes) -> KnownAnswer | None:
    try:
        return KnownAnswer(**orjson.loads(stored))
    except (orjson.JSONDecodeError, TypeError):
        log.warning("answer_cache_unreadable")
        return None
