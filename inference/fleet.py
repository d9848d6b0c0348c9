"""The replicas as this process sees them: a client each, requests in flight, health by probe."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import redis.asyncio
import structlog
from redis import Redis

from foundation.redis import REDIS_UNREACHABLE, key
from inference.catalog import Catalog, Replica, ServerKind
from inference.model_server import ModelServer, ServerInfo
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.client import TGIClient, model_session
from inference.tgi.errors import ModelServerError

log = structlog.get_logger(__name__)

PROBE_SECONDS = 2.0
_PROBE_LIMIT_SECONDS = 4.0
_FAILURES_UNTIL_OUT = 2
_REPORT_KEEP_SECONDS = 15


@dataclass(slots=True)
class ReplicaState:
    """What this process knows of one replica. Until the first probe it is believed healthy."""

    replica: Replica
    server: ModelServer
    info: ServerInfo | None = None
    failures: int = 0
    in_flight: int = 0

    @property
    def is_healthy(self) -> bool:
        return self.failures < _FAILURES_UNTIL_OUT

    @contextmanager
    def one_request(self) -> Iterator[ModelServer]:
        """Count a request while it lasts."""
        self.in_flight += 1
        try:
            yield self.server
        finally:
            self.in_flight -= 1


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What the workers found out about a replica, as other processes read it."""

    is_healthy: bool
    model_id: str | None = None
    max_total_tokens: int | None = None


@dataclass(slots=True)
class Fleet:
    """All replicas of a catalogue. Open it with `open_fleet`."""

    states: dict[Replica, ReplicaState] = field(default_factory=dict)

    def of(self, replicas: tuple[Replica, ...]) -> list[ReplicaState]:
        return [self.states[replica] for replica in replicas]


@asynccontextmanager
async def open_fleet(
    catalog: Catalog, redis_client: "redis.asyncio.Redis", *, api_key: str | None
) -> AsyncIterator[Fleet]:
    """Connect to every replica, and probe them all, and report, until the block ends."""
    async with model_session() as session:
        fleet = Fleet(
            {
                replica: ReplicaState(replica, client_of(replica, session=session, api_key=api_key))
                for replica in catalog.replicas()
            }
        )
        async with asyncio.TaskGroup() as background:
            probing = background.create_task(_probe_for_ever(fleet, redis_client), name="fleet probe")
            try:
                yield fleet
            finally:
                probing.cancel()


def client_of(replica: Replica, *, session: aiohttp.ClientSession, api_key: str | None) -> ModelServer:
    """Return a client that speaks the replica's protocol."""
    if replica.kind is ServerKind.OPENAI_COMPATIBLE:
        return OpenAICompatibleClient(replica.url, session=session, api_key=api_key)
    return TGIClient(replica.url, session=session, api_key=api_key)


async def _probe_for_ever(fleet: Fleet, redis_client: "redis.asyncio.Redis") -> None:
    while True:
        began = time.monotonic()
        async with asyncio.TaskGroup() as probes:
            for state in fleet.states.values():
                probes.create_task(_probe(state))
        try:
            await _report(fleet, redis_client)
        except REDIS_UNREACHABLE as error:
            log.warning("fleet_report_failed", error=type(error).__name__)
        await asyncio.sleep(max(0.0, PROBE_SECONDS - (time.monotonic() - began)))


async def _probe(state: ReplicaState) -> None:
    was_healthy = state.is_healthy
    try:
        async with asyncio.timeout(_PROBE_LIMIT_SECONDS):
            is_healthy = await state.server.is_healthy()
            if is_healthy and (state.info is None or not was_healthy):
                state.info = await state.server.info()
    except (ModelServerError, TimeoutError):
        is_healthy = False
    state.failures = 0 if is_healthy else state.failures + 1
    if state.is_healthy != was_healthy:
        log.info("replica_changed", replica=state.replica.url, is_healthy=state.is_healthy)


async def _report(fleet: Fleet, redis_client: "redis.asyncio.Redis") -> None:
    name = _report_key()
    pipeline = redis_client.pipeline(transaction=False)
    for state in fleet.states.values():
        info = state.info
        report = {
            "is_healthy": state.failures == 0 and info is not None,
            "model_id": info.model_id if info else None,
            "max_total_tokens": info.max_total_tokens if info else None,
        }
        pipeline.hset(name, state.replica.url, orjson.dumps(report))
    pipeline.expire(name, _REPORT_KEEP_SECONDS)
    await pipeline.execute()


def _report_key() -> str:
    return key(1, "fleet")


def read_reports(client: Redis) -> dict[str, ReplicaReport]:
    """Return the workers' last reports by replica URL; empty where no worker has reported for a while."""
    reports: Any = client.hgetall(_report_key())
    return {url.decode(): ReplicaReport(**orjson.loads(report)) for url, report in reports.items()}
