"""The door: who is let in while there is more to do than the model servers can, and what is done without before that.

Every request asks before anything is written for it. The expected wait is what waits ahead of it, divided by how fast
the model's replicas end answers. Requests that were let in and are on their way to the queue count as if they waited:
of five hundred that come at once, each sees the others. Who has more waiting than others of the class waits, and is
refused, as if all of them had as many.

The longest wait grows with the class, and so does what waits ahead as the class falls: background work is refused
first, then free users, then plus. The most urgent class is refused only when its own deadline could not be kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import orjson
import redis.asyncio
from redis import Redis

from inference import lua
from inference.jobs import PRIORITY_CLASSES
from inference.permits import milliseconds

_ON_ITS_WAY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a class may be expected to wait: `seconds`, or the time of `answers` where the model is a slow one, and
    never more than a `share_of_deadline`. `most_unknown` may wait where nobody knows how fast it goes.
    """

    seconds: float
    answers: float
    share_of_deadline: float
    most_unknown: int


PATIENCE = {
    "enterprise": Patience(seconds=1e9, answers=0.0, share_of_deadline=0.6, most_unknown=4000),
    "plus": Patience(seconds=3.0, answers=1.5, share_of_deadline=0.5, most_unknown=2000),
    "free": Patience(seconds=2.0, answers=1.0, share_of_deadline=0.4, most_unknown=1000),
    "background": Patience(seconds=1.0, answers=0.5, share_of_deadline=0.1, most_unknown=500),
}

OUTPUT_SHORTENED, TOOLS_DISABLED, FALLBACK_MODEL = "output_shortened", "tools_disabled", "fallback_model"
STEPS = {OUTPUT_SHORTENED: 0.25, TOOLS_DISABLED: 0.5, FALLBACK_MODEL: 0.75}
"""What is done without, and from which share of the longest wait on. After these: wait, and then be refused."""
SHORT_ANSWER_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Request:
    """Who comes to the door. `fallback` is the model that may answer instead, or empty."""

    generation_id: UUID
    user_id: UUID
    priority_class: str
    model: str
    fallback: str
    deadline_seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the door says: the model that answers, or `None` for a refusal; the wait, where it is known; the steps."""

    model: str | None
    expected_wait_seconds: float | None
    steps: tuple[str, ...] = ()


def ask(client: Redis, request: Request) -> Answer:
    """Let a request in or refuse it, in one round trip. One that is let in is counted until it reaches the queue."""
    patience = PATIENCE[request.priority_class]
    never_ms = milliseconds(request.deadline_seconds * patience.share_of_deadline)
    model, wait_ms, longest_ms = lua.run(
        client,
        "ask_at_door",
        str(request.generation_id),
        PRIORITY_CLASSES.index(request.priority_class),
        milliseconds(_ON_ITS_WAY_SECONDS),
        milliseconds(patience.seconds),
        patience.answers,
        never_ms,
        patience.most_unknown,
        request.model,
        STEPS[FALLBACK_MODEL],
        request.fallback,
        str(request.user_id),
    )
    chosen = model.decode() or None
    if wait_ms < 0:
        return Answer(chosen, None)
    share = wait_ms / longest_ms if longest_ms else 0.0
    steps = [step for step in (OUTPUT_SHORTENED, TOOLS_DISABLED) if share > STEPS[step]]
    if chosen not in (None, request.model):
        steps = [OUTPUT_SHORTENED, TOOLS_DISABLED, FALLBACK_MODEL]
    return Answer(chosen, wait_ms / 1000, tuple(steps) if chosen else ())


def leave(client: Redis, request: Request, model: str) -> None:
    """Take a request back that was let in to a model, but is not to be."""
    rank = PRIORITY_CLASSES.index(request.priority_class)
    client.zrem(f"{lua.base_key()}:door:{model}:{rank}", str(request.generation_id))


async def report_capacity(
    client: "redis.asyncio.Redis", worker: str, *, concurrency: int, permits: Mapping[str, int]
) -> None:
    """Say how many requests each model's replicas may have now, and how many answers this worker writes at most."""
    await lua.run_async(client, "report_capacity", worker, concurrency, orjson.dumps(dict(permits)))


async def withdraw_capacity(client: "redis.asyncio.Redis", worker: str) -> None:
    """Say that this worker takes no more."""
    await client.hdel(f"{lua.base_key()}:capacity", worker)
