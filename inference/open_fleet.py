"""A fleet that lives: connected, probed, watched and reported for as long as a worker runs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import structlog

from inference.catalog import Catalog, Replica, ServerKind
from inference.fleet import DEFAULT_PACE, Fleet, Pace
from inference.fleet_reports import Reporter
from inference.model_server import ModelServer
from inference.openai_compatible import OpenAICompatibleClient
from inference.permits import Permits
from inference.probing import Prober
from inference.tgi.client import TGIClient
from inference.tgi.transport import DEFAULT_TIMEOUTS, Timeouts, model_session
from inference.watchdog import Watchdog

log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 0.5


@asynccontextmanager
async def open_fleet(
    read_catalog: Callable[[], Catalog],
    permits: Permits,
    *,
    api_key: str | None,
    pace: Pace = DEFAULT_PACE,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> AsyncIterator[Fleet]:
    """Follow the catalogue, and probe, watch and report its replicas, until the block ends."""
    async with model_session() as session:

        def connect(replica: Replica) -> ModelServer:
            return client_of(replica, session=session, api_key=api_key, timeouts=timeouts)

        fleet = Fleet(read_catalog, connect, pace, held=permits.held)
        async with asyncio.TaskGroup() as background:
            reporter = Reporter(fleet, permits.client, permits.worker)
            works = (partial(_follow, fleet), Prober(fleet).run, Watchdog(fleet).run, reporter.run)
            tasks = [background.create_task(_for_ever(work), name="fleet") for work in works]
            try:
                yield fleet
            finally:
                for task in tasks:
                    task.cancel()


def client_of(
    replica: Replica,
    *,
    session: aiohttp.ClientSession,
    api_key: str | None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> ModelServer:
    """Return a client that speaks the replica's protocol."""
    kind = OpenAICompatibleClient if replica.kind is ServerKind.OPENAI_COMPATIBLE else TGIClient
    return kind(replica.url, session=session, api_key=api_key, timeouts=timeouts)


async def _for_ever(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Exception:
            # What one server says must not end the worker.
            log.exception("fleet_work_failed")
        await asyncio.sleep(_AGAIN_SECONDS)


async def _follow(fleet: Fleet) -> None:
    while True:
        await asyncio.sleep(fleet.pace.follow_seconds)
        fleet.follow()
