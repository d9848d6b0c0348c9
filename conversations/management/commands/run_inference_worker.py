"""Runs an inference worker: joins `inference.worker`, which knows no conversation, with what writes its jobs."""

import asyncio
import signal
from typing import Any

import structlog
import uvloop
from django.conf import settings
from django.core.management.base import BaseCommand

from conversations.services.context_cache import ContextCache
from conversations.services.deferring import Deferring
from conversations.services.errand_writing import ErrandWriter
from conversations.services.live_replies import LiveReplies
from conversations.services.replies import ReplyWriter
from foundation import event_loop, long_lived, metrics
from foundation.redis import connect_async
from inference.answer_cache import AnswerCache
from inference.cancellation import Cancellation, Cancellations
from inference.exceptions import InvalidFleet
from inference.fleet_gauges import TELL_SECONDS, FleetGauges
from inference.fleet_seeding import CatalogFollower
from inference.jobs import BACKGROUND, Job
from inference.open_fleet import open_fleet
from inference.permits import Permit, Permits
from inference.publisher import Publisher
from inference.stored_catalog import HOLD_SECONDS, current_catalog
from inference.worker import Handler, Periodic, Worker, worker_name

log = structlog.get_logger(__name__)

_SWEEP_SECONDS = 1.0
_WATCH_SECONDS = 1.0


class Command(BaseCommand):
    help = "Write answers until SIGTERM; then finish those in hand, or leave them to another worker."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with metrics.served(settings.WORKER_METRICS_HOST, settings.WORKER_METRICS_PORT), Deferring() as deferring:
                long_lived.prepare()
                uvloop.run(self._work(deferring))
        except InvalidFleet as error:
            self.stderr.write(error.message)
            raise SystemExit(2) from error

    async def _work(self, deferring: Deferring) -> None:
        follower = CatalogFollower()
        await follower.begin()
        client = connect_async()
        permits = Permits(client, worker_name())
        live = LiveReplies(client)
        cache = AnswerCache(client, settings.ANSWER_CACHE_SECONDS)
        contexts = ContextCache(client, settings.CONTEXT_CACHE_SECONDS)
        async with (
            client,
            event_loop.watched("worker"),
            Publisher(client, settings.STREAM_KEEP_SECONDS) as publisher,
            open_fleet(current_catalog, permits, api_key=settings.MODEL_API_KEY or None) as fleet,
        ):
            errands = ErrandWriter(fleet, deferring.settle)
            replies = ReplyWriter(client, fleet, publisher, live, cache, contexts, deferring.look_after)
            worker = Worker(
                client=client,
                handler=_by_class(errands, replies),
                cancellations=Cancellations(),
                permits=permits,
                offers=fleet.all_offers,
                capacity=fleet.capacity,
                answers_waiting=fleet.answers_waiting,
                concurrency=settings.WORKER_CONCURRENCY,
                drain_seconds=settings.WORKER_DRAIN_SECONDS,
                periodic=(
                    Periodic("catalog", HOLD_SECONDS, follower.follow),
                    Periodic("gauges", TELL_SECONDS, FleetGauges(client, fleet, permits).tell),
                    Periodic("checkpoint", settings.CHECKPOINT_SECONDS, live.checkpoint),
                    Periodic("errands", settings.CHECKPOINT_SECONDS, errands.renew),
                    Periodic("sweep", _SWEEP_SECONDS, live.sweep),
                    Periodic("stop_unwatched", _WATCH_SECONDS, live.stop_unwatched),
                ),
            )
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, worker.stop)
            log.info("worker_ready", models=[model.alias for model in fleet.catalog.models])
            await worker.run()
            log.info("worker_stopped")


def _by_class(errands: ErrandWriter, replies: ReplyWriter) -> Handler:
    """Return what writes errands, which are of the background class, and answers."""

    async def write(job: Job, cancellation: Cancellation, permit: Permit) -> None:
        if job.priority_class == BACKGROUND and await errands.write(job, cancellation, permit):
            return
        await replies(job, cancellation, permit)

    return write
