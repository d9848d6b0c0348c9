"""What each worker tells the other processes of the replicas, and what follows from all of it together."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypedDict

import orjson
import redis.asyncio
import structlog
from redis import Redis

from foundation.redis import REDIS_UNREACHABLE, key, shared_client
from inference.fleet import Fleet
from inference.replica_state import ReplicaState

log = structlog.get_logger(__name__)

KEEP_SECONDS = 15
_LEAST_SECONDS = 0.1
_BEST_FIRST = ("healthy", "slow_start", "draining", "half_open", "ejected", "refused", "unknown")


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What the workers found out about a replica. `foreign_load` is what the server has beside our own requests."""

    is_healthy: bool
    state: str = "unknown"
    why: str = ""
    model_id: str | None = None
    model_sha: str | None = None
    max_total_tokens: int | None = None
    version: str | None = None
    in_flight: int = 0
    permits: int = 0
    foreign_load: int = 0
    tokens_per_second: float = 0.0
    seen_at: float = 0.0


class ReportLine(TypedDict):
    """What one worker says of one replica."""

    url: str
    is_healthy: bool
    state: str
    why: str
    model_id: str | None
    model_sha: str | None
    max_total_tokens: int | None
    version: str | None
    in_flight: int
    permits: int
    server_load: int
    tokens_per_second: float
    seen_at: float


@dataclass(slots=True)
class Reporter:
    """Tells in one key of its own, again and again and soon after a change, what a worker knows."""

    fleet: Fleet
    client: "redis.asyncio.Redis"
    worker: str
    _frames: dict[str, int] = field(default_factory=dict)
    _reported_at: float = 0.0

    async def run(self) -> None:
        """Report until cancelled; then take the report back."""
        try:
            while True:
                self.fleet.news.clear()
                await self._report()
                await asyncio.sleep(_LEAST_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.fleet.pace.report_seconds - _LEAST_SECONDS):
                        await self.fleet.news.wait()
        finally:
            await self._withdraw()

    async def _report(self) -> None:
        now = asyncio.get_running_loop().time()
        seconds = max(0.1, now - self._reported_at)
        lines = [self._line(url, state, now, seconds) for url, state in self.fleet.states.items()]
        self._frames = {url: state.frames for url, state in self.fleet.states.items()}
        self._reported_at = now
        try:
            pipeline = self.client.pipeline(transaction=False)
            write_report(pipeline, self.worker, lines)
            await pipeline.execute()
        except REDIS_UNREACHABLE as error:
            log.warning("fleet_report_failed", error=type(error).__name__)

    async def _withdraw(self) -> None:
        try:
            pipeline = self.client.pipeline(transaction=False)
            pipeline.delete(_report_key(self.worker))
            pipeline.zrem(_reporters_key(), self.worker)
            await pipeline.execute()
        except REDIS_UNREACHABLE:
            return

    def _line(self, url: str, state: ReplicaState, now: float, seconds: float) -> ReportLine:
        info, told = state.info, state.reported_state(now)
        return {
            "url": url,
            "is_healthy": told in ("healthy", "slow_start"),
            "state": told,
            "why": state.refused or state.health.why,
            "model_id": info.model_id if info else None,
            "model_sha": info.model_sha if info else None,
            "max_total_tokens": info.max_total_tokens if info else None,
            "version": info.version if info else None,
            "in_flight": state.in_flight,
            "permits": state.permits_now(now),
            "server_load": state.load.total if state.load else 0,
            "tokens_per_second": round((state.frames - self._frames.get(url, state.frames)) / seconds, 1),
            "seen_at": time.time(),
        }


def write_report(pipeline: Any, worker: str, lines: Sequence[ReportLine]) -> None:
    """Add to a pipeline, of either kind of client, what replaces a worker's report."""
    pipeline.set(_report_key(worker), orjson.dumps(lines), ex=KEEP_SECONDS)
    pipeline.zadd(_reporters_key(), {worker: time.time()})
    pipeline.zremrangebyscore(_reporters_key(), "-inf", time.time() - KEEP_SECONDS)


def read_reports(client: Redis) -> dict[str, ReplicaReport]:
    """Return the workers' last reports by replica URL; empty where no worker has reported for a while."""
    workers: Any = client.zrangebyscore(_reporters_key(), time.time() - KEEP_SECONDS, "+inf")
    if not workers:
        return {}
    reports: Any = client.mget([_report_key(worker.decode()) for worker in workers])
    return _merged(reports)


def last_reports() -> dict[str, ReplicaReport]:
    """Return the same; nothing while Redis is away."""
    try:
        return read_reports(shared_client())
    except REDIS_UNREACHABLE:
        return {}


async def read_reports_async(client: "redis.asyncio.Redis") -> dict[str, ReplicaReport]:
    """Like `read_reports`."""
    workers: Any = await client.zrangebyscore(_reporters_key(), time.time() - KEEP_SECONDS, "+inf")
    if not workers:
        return {}
    reports: Any = await client.mget([_report_key(worker.decode()) for worker in workers])
    return _merged(reports)


def _merged(reports: Iterable[bytes | None]) -> dict[str, ReplicaReport]:
    by_url: dict[str, list[ReportLine]] = {}
    for report in reports:
        for line in orjson.loads(report) if report else ():
            by_url.setdefault(line["url"], []).append(line)
    return {url: _joined(lines) for url, lines in by_url.items()}


def _joined(lines: list[ReportLine]) -> ReplicaReport:
    """Join what the workers say: a replica is as well as the worker that gets on best with it finds."""
    lines.sort(key=lambda line: (_BEST_FIRST.index(line["state"]), -line["seen_at"]))
    best = lines[0]
    facts = next((line for line in lines if line["model_id"]), best)
    in_flight = sum(line["in_flight"] for line in lines)
    return ReplicaReport(
        is_healthy=best["is_healthy"],
        state=best["state"],
        why=best["why"],
        model_id=facts["model_id"],
        model_sha=facts["model_sha"],
        max_total_tokens=facts["max_total_tokens"],
        version=facts["version"],
        in_flight=in_flight,
        permits=max(line["permits"] for line in lines),
        foreign_load=max(0, max(line["server_load"] for line in lines) - in_flight),
        tokens_per_second=sum(line["tokens_per_second"] for line in lines),
        seen_at=max(line["seen_at"] for line in lines),
    )


def _reporters_key() -> str:
    """Name the sorted set of workers that report: name → seconds since the epoch of the last report."""
    return key(1, "fleet", "reporters")


def _report_key(worker: str) -> str:
    return key(1, "fleet", "of", worker)
