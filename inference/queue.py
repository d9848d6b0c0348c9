"""The queue of generations: by model and class, shared fairly between users, and taken together with a permit.

It is a hint, never the truth: whoever takes a job claims the generation in the database, and a sweeper enqueues again
what the queue has forgotten. So taking removes the job at once, and enqueueing what already waits does nothing.

Classes are strict. Within one the user goes next for whom the fewest tokens were written (the virtual token counter of
Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024). One take in five may go, out of turn, to a user
whose turn has been due for long: so the least urgent class moves too, and nobody waits behind newcomers for ever.

The background class otherwise delays nobody: in its turn it leaves the last free place of a replica to whoever comes,
and a take says how many people wait for each model, so that its jobs under way can give way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import batched
from typing import Any
from uuid import UUID

import redis.asyncio
from redis import Redis

from inference import lua
from inference.jobs import PRIORITY_CLASSES, Job
from inference.permits import PERMIT_SECONDS, Offer, numbers_by_name, offers_as_json

AGEING_SECONDS = 15
"""A user whose turn has been due for so long counts as one class more urgent; twice as long, two."""
UNKNOWN_MODEL_SECONDS = 5
"""Jobs of a model that a worker's catalogue does not name wait so long for one that does; then they are ended."""
_MOST_JOBS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Taken:
    """What a worker got, and how many requests each replica that was looked at has, all workers together.

    `waiting_people` are the jobs above the background class that wait, of each model that has no free place.
    """

    jobs: list[Job]
    holders: dict[str, int]
    waiting_people: dict[str, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job waits: 1 is next. The wait is not known while no worker reports a replica that could take it."""

    position: int
    expected_wait_seconds: float | None


def wake_channel() -> str:
    """Return the channel on which workers hear that there may be something to take."""
    return lua.wake_channel()


def enqueue(client: Redis, jobs: Iterable[Job]) -> None:
    """Add the jobs that do not wait yet."""
    for some in batched(jobs, _MOST_JOBS_AT_ONCE, strict=False):
        lua.run(client, "enqueue", *(word for job in some for word in _words(job)))


def remove(client: Redis, generation_ids: Sequence[UUID]) -> None:
    """Take jobs out that are no longer wanted."""
    if generation_ids:
        lua.run(client, "remove", *map(str, generation_ids))


def forget_user(client: Redis, models: Iterable[str], user_id: UUID) -> int:
    """Forget how much was written for a user with nothing waiting; return in how many classes of models that was."""
    pipeline = client.pipeline(transaction=False)
    for model in models:
        for rank in range(len(PRIORITY_CLASSES)):
            pipeline.zrem(f"{lua.base_key()}:counters:{model}:{rank}", str(user_id))
    return sum(pipeline.execute())


async def take(
    client: "redis.asyncio.Redis",
    offers: Mapping[str, Sequence[Offer]],
    *,
    worker: str,
    most: int,
    most_background: int | None = None,
) -> Taken:
    """Remove and return up to `most` jobs, the next ones first, each with a permit of one of its model's `offers`.

    Of the background class up to `most_background`, if that is given.

    `offers` names every model of the catalogue; where a model has none that is free, its jobs wait. A job that is past
    its deadline, or of a model that is not named, comes without a permit.
    """
    jobs, holders, waiting = await lua.run_async(
        client,
        "take",
        most,
        AGEING_SECONDS * 1000,
        round(PERMIT_SECONDS * 1000),
        worker,
        UNKNOWN_MODEL_SECONDS * 1000,
        offers_as_json(offers),
        most if most_background is None else most_background,
    )
    return Taken([_job(words) for words in jobs], numbers_by_name(holders), numbers_by_name(waiting))


async def places(client: "redis.asyncio.Redis", generation_ids: Sequence[UUID]) -> list[Place | None]:
    """Return where jobs wait; `None` for one that does not."""
    if not generation_ids:
        return []
    answer = await lua.run_async(client, "places", *map(str, generation_ids))
    return [_place(int(position), int(wait_ms)) for position, wait_ms in batched(answer, 2, strict=True)]


async def place(client: "redis.asyncio.Redis", generation_id: UUID) -> Place | None:
    """Return where a job waits; `None` for one that does not."""
    (found,) = await places(client, [generation_id])
    return found


def _place(position: int, wait_ms: int) -> Place | None:
    return Place(position, None if wait_ms < 0 else wait_ms / 1000) if position else None


def waiting_count(client: Redis) -> int:
    """Return how many jobs wait."""
    count: Any = client.hlen(f"{lua.base_key()}:jobs")
    return int(count)


async def lengths(client: "redis.asyncio.Redis", models: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many jobs wait by model and class, in one round trip."""
    names = [(model, priority_class) for model in models for priority_class in PRIORITY_CLASSES]
    pipeline = client.pipeline(transaction=False)
    for model, priority_class in names:
        pipeline.zcard(f"{lua.base_key()}:waiting:{model}:{PRIORITY_CLASSES.index(priority_class)}")
    return dict(zip(names, await pipeline.execute(), strict=True))


def _words(job: Job) -> tuple[str | int, ...]:
    deadline = f"{job.deadline.timestamp():.6f}"
    return str(job.generation_id), job.model, job.rank, str(job.user_id), job.estimated_tokens, deadline


def _job(words: Sequence[Any]) -> Job:
    generation_id, model, rank, user_id, estimate, deadline, waited_ms, url, is_before_people = words
    return Job(
        UUID(generation_id.decode()),
        PRIORITY_CLASSES[int(rank)],
        model.decode(),
        UUID(user_id.decode()),
        deadline=datetime.fromtimestamp(float(deadline), UTC),
        estimated_tokens=int(estimate),
        permit_url=url.decode() or None,
        waited_seconds=int(waited_ms) / 1000,
        is_before_people=bool(is_before_people),
    )
