"""The inference worker: takes jobs with their permits, runs the handler on each, and hears when one is to stop.

It knows no conversation.
"""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import redis.asyncio
import structlog

from foundation.redis import REDIS_UNREACHABLE, key
from inference import overload, queue
from inference.cancellation import Cancellation, Cancellations, Why, cancel_channel
from inference.giving_way import GivingWay
from inference.jobs import BACKGROUND, Job
from inference.permits import Offer, Permit, Permits

log = structlog.get_logger(__name__)

type Handler = Callable[[Job, Cancellation, Permit], Awaitable[None]]
"""Writes one generation. It returns when that has ended, one way or another; what it raises is a fault, and logged."""

type Offers = Callable[[], Mapping[str, Sequence[Offer]]]
"""Says for each model which replicas may be used now, and with how many permits."""

_MOST_TAKEN = 16
_MOST_OFFERS = 16
_MOST_BACKGROUND = 4
"""Background work at once: what more of it there is takes no time from answers, though model servers had places."""
_PERMITS_SECONDS = 1.0
_RETRY_SECONDS = 0.5
_HEARTBEAT_SECONDS = 1.0
_HEARTBEAT_KEEP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Periodic:
    """Something the worker does again and again while it lives."""

    name: str
    every_seconds: float
    run: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Worker:
    """One process's share of the work. `run` returns once `stop` was called and the work in hand has ended."""

    client: "redis.asyncio.Redis"
    handler: Handler
    cancellations: Cancellations
    permits: Permits
    offers: Offers
    concurrency: int
    drain_seconds: float
    periodic: tuple[Periodic, ...] = ()
    capacity: Callable[[], Mapping[str, int]] | None = None
    """Says how many requests each model could have at once, however few may be offered at this moment."""
    answers_waiting: Callable[[], Mapping[str, int]] = dict
    """Says how many answers under way have lost their place and wait for another, of each model."""
    look_again_seconds: float = 1.0
    """How long after the last look the queue is looked at again, though nobody has told of a change."""
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _background: set[asyncio.Task[None]] = field(default_factory=set)
    """Those of the background class."""
    _giving_way: GivingWay = field(default_factory=GivingWay)
    _something_changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_stopping: bool = False

    def stop(self) -> None:
        """Take no more jobs; let those in hand end, for `drain_seconds` at most."""
        self._is_stopping = True
        self._something_changed.set()

    async def run(self) -> None:
        """Work until stopped."""
        async with asyncio.TaskGroup() as background:
            tasks = [background.create_task(self._listen(), name="listen")]
            periodic = (*self._own_periodic, *self.periodic)
            tasks += [background.create_task(self._repeat(each), name=each.name) for each in periodic]
            await self._take_for_ever()
            await self._drain()
            for task in tasks:
                task.cancel()
        await self._say_goodbye()

    async def _take_for_ever(self) -> None:
        while not self._is_stopping:
            self._something_changed.clear()
            wanted = max(0, min(self.concurrency - len(self._running), _MOST_TAKEN))
            try:
                taken = await self._take(wanted) if wanted or self._giving_way.is_possible() else 0
            except REDIS_UNREACHABLE as error:
                log.warning("queue_unreachable", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if taken < wanted or not wanted:
                await self._wait_for_change()

    async def _take(self, most: int) -> int:
        """Begin what waits and has a permit; return how much that was. Background work gives way to people who wait."""
        offers = {alias: self._least_loaded(some) for alias, some in self.offers().items()}
        most_background = max(0, _MOST_BACKGROUND - len(self._background))
        taken = await queue.take(
            self.client, offers, worker=self.permits.worker, most=most, most_background=most_background
        )
        self.permits.note(taken.holders)
        for job in taken.jobs:
            self._begin(job)
        self._giving_way.make_room(Counter(taken.waiting_people) + Counter(self.answers_waiting()), offers)
        return len(taken.jobs)

    def _least_loaded(self, offers: Sequence[Offer]) -> Sequence[Offer]:
        """Return as many replicas as are worth being looked at in one call."""
        if len(offers) <= _MOST_OFFERS:
            return offers
        return sorted(offers, key=lambda offer: self.permits.held(offer.url) / max(1, offer.permits))[:_MOST_OFFERS]

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(self.look_again_seconds):
                await self._something_changed.wait()
        except TimeoutError:
            return

    def _begin(self, job: Job) -> None:
        task = asyncio.create_task(self._run_job(job), name=str(job.generation_id))
        self._running.add(task)
        if job.priority_class == BACKGROUND:
            self._background.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._background.discard(task)
        self._something_changed.set()

    async def _run_job(self, job: Job) -> None:
        structlog.contextvars.bind_contextvars(generation_id=str(job.generation_id))
        permit = self.permits.open(job)
        try:
            with (
                self.cancellations.opened(job.generation_id) as cancellation,
                self._giving_way.opened(permit, cancellation),
            ):
                await self.handler(job, cancellation, permit)
        except Exception:
            # The lease runs out and the sweeper gives the generation to a worker again.
            log.exception("generation_crashed")
        finally:
            await permit.release()

    async def _drain(self) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=self.drain_seconds)
        self.cancellations.request_all(Why.HANDED_OVER)
        if self._running:
            await asyncio.wait(self._running, timeout=self.drain_seconds)

    async def _listen(self) -> None:
        """Hear of new jobs and of cancels. What is missed while Redis is away, the database still tells."""
        while True:
            try:
                async with self.client.pubsub(ignore_subscribe_messages=True) as channels:
                    await channels.subscribe(queue.wake_channel(), cancel_channel())
                    self._something_changed.set()
                    await self._hear(channels)
            except REDIS_UNREACHABLE as error:
                log.warning("listening_interrupted", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _hear(self, channels: "redis.asyncio.client.PubSub") -> None:
        wake = queue.wake_channel().encode()
        while True:
            message = await channels.get_message(timeout=None)
            if message is None:
                continue
            if message["channel"] == wake:
                self._something_changed.set()
            else:
                self.cancellations.request(UUID(message["data"].decode()), Why.CANCELLED)

    async def _repeat(self, work: Periodic) -> None:
        while True:
            began = time.monotonic()
            try:
                await work.run()
            except Exception:
                log.exception("periodic_work_failed", work=work.name)
            await asyncio.sleep(max(0.0, work.every_seconds - (time.monotonic() - began)))

    @property
    def _own_periodic(self) -> tuple[Periodic, ...]:
        return (
            Periodic("heartbeat", _HEARTBEAT_SECONDS, self._say_alive),
            Periodic("permits", _PERMITS_SECONDS, self._keep_permits),
        )

    async def _keep_permits(self) -> None:
        offers = self.offers()
        await self.permits.renew({offer.url for some in offers.values() for offer in some})
        if self._is_stopping:
            return
        counts = self.capacity() if self.capacity is not None else _permits_of(offers)
        try:
            await overload.report_capacity(
                self.client, self.permits.worker, concurrency=self.concurrency, permits=counts
            )
        except REDIS_UNREACHABLE as error:
            log.warning("capacity_not_reported", error=type(error).__name__)

    async def _say_alive(self) -> None:
        try:
            pipeline = self.client.pipeline(transaction=False)
            pipeline.zadd(workers_key(), {worker_name(): time.time()})
            pipeline.zremrangebyscore(workers_key(), "-inf", time.time() - _HEARTBEAT_KEEP_SECONDS)
            await pipeline.execute()
        except REDIS_UNREACHABLE as error:
            log.warning("heartbeat_failed", error=type(error).__name__)

    async def _say_goodbye(self) -> None:
        try:
            await self.client.zrem(workers_key(), worker_name())
            await overload.withdraw_capacity(self.client, self.permits.worker)
        except REDIS_UNREACHABLE:
            return


def workers_key() -> str:
    """Return the sorted set of live workers: name → seconds since the epoch of its last sign of life."""
    return key(1, "workers")


def worker_name() -> str:
    """Return this process's name among the workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _permits_of(offers: Mapping[str, Sequence[Offer]]) -> dict[str, int]:
    """Return how many requests each model may have at once."""
    return {alias: sum(offer.permits for offer in some) for alias, some in offers.items()}
