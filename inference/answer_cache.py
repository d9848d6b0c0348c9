"""What a model has answered to a whole prompt before, kept in Redis for a while: off unless a site asks for it.

Whoever looks up or keeps an answer has made sure that nothing in the prompt is one user's own. `scope` names those
among whom an answer may be shared; nothing crosses from one scope to another. Redis may lose all: that costs time only.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

import orjson
import redis.asyncio
import structlog

from foundation.redis import REDIS_UNREACHABLE, key
from inference import metrics
from inference.messages import ChatMessage, SamplingOptions

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

    async def keep(self, digest: str, answer: KnownAnswer) -> None:
        """Keep an answer, unless it is empty or long. One that cannot be kept is no loss."""
        if not self.is_on or not 0 < len(answer.text) <= MOST_CHARACTERS:
            return
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._client.set(_key(digest), orjson.dumps(asdict(answer)), ex=self._keep_seconds)
        except (*REDIS_UNREACHABLE, TimeoutError) as error:
            log.warning("answer_not_kept", error=type(error).__name__)


def _key(digest: str) -> str:
    return key(_VERSION, "answer", digest)


def _decoded(stored: bytes) -> KnownAnswer | None:
    try:
        return KnownAnswer(**orjson.loads(stored))
    except (orjson.JSONDecodeError, TypeError):
        log.warning("answer_cache_unreadable")
        return None
