"""Whether each thing that a message needs is up, by name."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

import psycopg
from django.conf import settings
from django.db import connection

from chatsite.celery import celery_workers_key
from chatsite.metrics import COMPONENT_UP
from foundation.redis import REDIS_UNREACHABLE, connect_async
from inference.fleet_reports import ReplicaReport, read_reports_async
from inference.stored_catalog import current_catalog, refresh_catalog
from inference.worker import workers_key

PROBE_SECONDS = 1.5
KEEP_SECONDS = 1.0
WORKER_ALIVE_SECONDS, CELERY_ALIVE_SECONDS = 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """What is up. A replica is named by its model and its place: addresses are nobody's business."""

    database: bool
    redis: bool
    worker: bool
    celery: bool
    bulk: bool
    replicas: dict[str, bool]

    @property
    def is_ready(self) -> bool:
        """Whether a message could be answered now; background work may wait."""
        return self.database and self.redis and self.worker and any(self.replicas.values())

    def components(self) -> dict[str, bool]:
        """Return each component's state by its name."""
        names = ("database", "redis", "worker", "celery", "bulk")
        return {name: getattr(self, name) for name in names} | self.replicas


class ReadinessCache:
    """Probes at most once at a time, and answers from the last result while it is fresh."""

    def __init__(self, keep_seconds: float = KEEP_SECONDS) -> None:
        self._keep_seconds = keep_seconds
        self._known: tuple[float, Readiness] | None = None
        self._probing: asyncio.Task[Readiness] | None = None

    async def get(self) -> Readiness:
        """Return the readiness as of at most a moment ago."""
        if self._known is not None and time.monotonic() - self._known[0] < self._keep_seconds:
            return self._known[1]
        if self._probing is None or self._probing.done() or self._probing.get_loop() is not asyncio.get_running_loop():
            self._probing = asyncio.create_task(self._probe())
        # Shielded: the caller who began the probe may go away, the others still wait for it.
        return await asyncio.shield(self._probing)

    async def _probe(self) -> Readiness:
        readiness = await probe()
        self._known = (time.monotonic(), readiness)
        for name, is_up in readiness.components().items():
            COMPONENT_UP.labels(component=name).set(is_up)
        return readiness


async def probe() -> Readiness:
    """Ask everything at once; what does not answer in time is down."""
    async with asyncio.TaskGroup() as probes:
        database = probes.create_task(_in_time(_database_answers()))
        # What it finds is for the next probe: this one does not wait for a database that says nothing.
        probes.create_task(_in_time(_catalog_is_read()))
        signs_of_life = probes.create_task(_signs_of_life())
    redis, worker, (celery, bulk), reports = signs_of_life.result()
    return Readiness(
        database=database.result(),
        redis=redis,
        worker=worker,
        celery=celery,
        bulk=bulk,
        replicas={name: url in reports and reports[url].is_healthy for name, url in _named_replicas()},
    )


async def _in_time(answer: Awaitable[bool]) -> bool:
    try:
        return await asyncio.wait_for(answer, PROBE_SECONDS)
    except TimeoutError:
        return False


async def _catalog_is_read() -> bool:
    await refresh_catalog()
    return True


async def _database_answers() -> bool:
    # A connection of its own, not one of the pool: it can be given up in time, and a full pool is no reason to restart.
    parameters = {**connection.get_connection_params(), "cursor_factory": psycopg.AsyncCursor}
    try:
        async with await psycopg.AsyncConnection.connect(**parameters) as database:
            await database.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


async def _signs_of_life() -> tuple[bool, bool, tuple[bool, bool], dict[str, ReplicaReport]]:
    """Return whether Redis answers, whether workers and Celery workers of each queue said there lately that they live,
    and what the workers say of the replicas: they know them better than a question from here could tell."""
    client = connect_async()
    now = time.time()
    try:
        async with asyncio.timeout(PROBE_SECONDS), client.pipeline(transaction=False) as pipeline:
            pipeline.zcount(workers_key(), now - WORKER_ALIVE_SECONDS, "+inf")
            for queue in (settings.CELERY_TASK_DEFAULT_QUEUE, settings.BULK_QUEUE):
                pipeline.zcount(celery_workers_key(queue), now - CELERY_ALIVE_SECONDS, "+inf")
            workers, celery, bulk = await pipeline.execute()
            reports = await read_reports_async(client)
    except REDIS_UNREACHABLE:
        return False, False, (False, False), {}
    finally:
        await client.aclose()
    return True, workers > 0, (celery > 0, bulk > 0), reports


def _named_replicas() -> Iterator[tuple[str, str]]:
    for model in current_catalog().models:
        for place, replica in enumerate(model.replicas, start=1):
            yield f"{model.alias}/{place}", replica.url
