"""How many requests each replica has, over all workers: nobody sends one without holding a permit.

A permit is a member of the replica's sorted set in Redis, and runs out unless its worker renews it. So those of a
killed worker come back by themselves, and a Redis that was emptied knows them again a second later; until every worker
has had the time to renew its own, it gives none.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

import orjson
import redis.asyncio
import structlog

from foundation.redis import REDIS_UNREACHABLE
from inference import lua
from inference.jobs import BACKGROUND, Job, weighted_tokens

log = structlog.get_logger(__name__)

PERMIT_SECONDS = 5.0
"""A permit that was not renewed for so long is given up."""
_GIVES_WAY = " gives way"
"""Ends a holder's name where a person who waits may have its place, for the scripts to see."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A replica that may take a request now, and how many it may have at once."""

    url: str
    permits: int


class Permits:
    """The permits that this worker holds, and what it last heard of everybody's."""

    def __init__(self, client: "redis.asyncio.Redis", worker: str) -> None:
        self.client = client
        self.worker = worker
        self._mine: set[Permit] = set()
        self._here: Counter[str] = Counter()
        self._holders: dict[str, int] = {}

    def held(self, url: str) -> int:
        """Return how many requests a replica has, over all workers, as far as is known here."""
        return max(self._holders.get(url, 0), self._here[url])

    def held_here(self, url: str) -> int:
        """Return how many requests this worker has at a replica."""
        return self._here[url]

    def open(self, job: Job) -> "Permit":
        """Return the permit that was reserved when the job was taken. Whoever opens it releases it."""
        permit = Permit(self, job)
        permit.move(job.permit_url)
        self._mine.add(permit)
        return permit

    def close(self, permit: "Permit") -> bool:
        """Renew it no more; say whether it was open."""
        was_open = permit in self._mine
        self._mine.discard(permit)
        return was_open

    def count(self, url: str, change: int) -> None:
        """Count a request of this worker's at a replica, or one less."""
        self._here[url] += change
        if not self._here[url]:
            del self._here[url]
        if url in self._holders:
            self._holders[url] = max(0, self._holders[url] + change)

    def note(self, holders: Mapping[str, int]) -> None:
        """Remember how many requests replicas have."""
        self._holders.update(holders)

    async def renew(self, urls: Iterable[str]) -> None:
        """Keep what this worker holds, and hear how many requests these replicas have."""
        holding = [(permit, permit.url) for permit in self._mine if permit.url is not None]
        try:
            missing, seen = await self._renew(holding, urls, takes_again=False)
            lost = [(permit, url) for permit, url in (holding[place - 1] for place in missing) if permit.url == url]
            if lost:
                log.warning("permits_taken_again", count=len(lost))
                _, seen = await self._renew(lost, urls, takes_again=True)
        except REDIS_UNREACHABLE as error:
            log.warning("permits_not_renewed", error=type(error).__name__)
            self._holders = {}
            return
        self._holders = numbers_by_name(seen)

    async def _renew(
        self, holding: "Sequence[tuple[Permit, str]]", urls: Iterable[str], *, takes_again: bool
    ) -> Sequence[Any]:
        words = [word for permit, url in holding for word in (permit.holder, permit.job.model, url)]
        lease = milliseconds(PERMIT_SECONDS)
        answer: Sequence[Any] = await lua.run_async(
            self.client, "renew", lease, int(takes_again), len(holding), *words, *urls
        )
        return answer


@dataclass(eq=False, slots=True)
class Permit:
    """One generation's place at one replica; `url` is `None` while it holds none.

    The tokens are what the generation has read and had written: set before `release`, they settle what its user was
    charged when the job was taken.
    """

    permits: Permits
    job: Job
    url: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    _began: float = field(default_factory=time.monotonic)
    _perhaps: set[str] = field(default_factory=set)
    """Replicas at which an exchange that was broken off may have taken a permit."""

    @property
    def holder(self) -> str:
        """Its name in Redis, as the taking of the job made it."""
        return f"{self.job.generation_id} {self.permits.worker}{_GIVES_WAY if self.job.gives_way else ''}"

    async def exchange(self, wanted: Sequence[Offer]) -> str | None:
        """Hold a permit of the first of `wanted` that has one free, and return its URL; what is held counts as free.

        A permit of another replica is given back. Where all are full, none is held. What gives way to people takes the
        last place of no replica.
        """
        if self.job.gives_way:
            wanted = [Offer(each.url, left_by_people(each.permits)) for each in wanted]
        if wanted and wanted[0].url == self.url:
            return self.url
        asked = {offer.url for offer in wanted} - self._perhaps
        self._perhaps |= asked
        words = milliseconds(PERMIT_SECONDS), self.job.model, self.url or "", orjson.dumps(_pairs(wanted))
        try:
            answer = await lua.run_async(self.permits.client, "exchange", self.holder, *words)
        except REDIS_UNREACHABLE as error:
            log.warning("permits_unreachable", error=type(error).__name__)
            self.move(self._free_here(wanted))
            return self.url
        self._perhaps -= asked
        self.move(answer[0].decode() or None)
        self.permits.note(numbers_by_name(answer[1:]))
        return self.url

    def _free_here(self, wanted: Sequence[Offer]) -> str | None:
        """Choose by what this worker itself has at each: all that is known while Redis is away."""
        for offer in wanted:
            if offer.url == self.url or self.permits.held_here(offer.url) < offer.permits:
                return offer.url
        return None

    def move(self, url: str | None) -> None:
        """Count it at another replica."""
        if self.url is not None:
            self.permits.count(self.url, -1)
        if url is not None:
            self.permits.count(url, 1)
        self.url = url

    async def release(self) -> None:
        """Give the permit back, and charge the user for what was really spent; a second time, do nothing."""
        if not self.permits.close(self):
            return
        spent = weighted_tokens(self.tokens_in, self.tokens_out)
        charged = self.job.estimated_tokens if self.job.permit_url else 0
        # A title says nothing about how long answers take.
        was_at_work = self.url is not None and self.tokens_out > 0 and self.job.priority_class != BACKGROUND
        held_ms = milliseconds(time.monotonic() - self._began) if was_at_work else -1
        urls = self._perhaps | {url for url in (self.url, self.job.permit_url) if url}
        self.move(None)
        words = self.job.model, self.job.rank, str(self.job.user_id), spent - charged, held_ms
        try:
            await lua.run_async(self.permits.client, "release", self.holder, *words, *urls)
        except REDIS_UNREACHABLE as error:
            # It runs out by itself.
            log.warning("permit_not_released", error=type(error).__name__)


def left_by_people(permits: int) -> int:
    """Return how many of a replica's permits background work may have: the last one of several is for people."""
    return max(1, permits - 1)


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def offers_as_json(offers: Mapping[str, Sequence[Offer]]) -> bytes:
    """Return each model's offers as the scripts read them."""
    return orjson.dumps({alias: _pairs(some) for alias, some in offers.items()})


def numbers_by_name(flat: Sequence[Any]) -> dict[str, int]:
    """Return what the scripts answer as `url, count, url, count, …`, or of models by their aliases."""
    return {name.decode(): int(count) for name, count in batched(flat, 2, strict=True)}


def _pairs(offers: Iterable[Offer]) -> list[tuple[str, int]]:
    return [(offer.url, offer.permits) for offer in offers]
