"""Three times as many messages as the model server can answer, from all classes at once, whatever becomes of each."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import itemgetter

from tests.benchmarks.client import Answer, Request, ask
from tests.benchmarks.product import Account

PREFILL_MS = 100
TOKENS = 10
TOKEN_MS = 70
SERVICE_SECONDS = (PREFILL_MS + TOKENS * TOKEN_MS) / 1000
_PATIENCE_SECONDS = 150
_CONNECT_SECONDS = 0.2
_PROMPT = f'@twin {{"stamp": true, "tokens": {TOKENS}, "token_ms": {TOKEN_MS}, "prefill_ms": {PREFILL_MS}}}\nGo'


@dataclass(frozen=True, slots=True)
class Crowd:
    """Users of a class who together send, at random moments, so many times what there is capacity for."""

    name: str
    priority_class: str
    users: int
    times_capacity: float


CROWDS = (
    Crowd("enterprise", "enterprise", 10, 0.2),
    Crowd("plus", "plus", 20, 0.4),
    Crowd("free, 30 people", "free", 30, 1.2),
    Crowd("free, one greedy", "free", 1, 0.6),
    Crowd("background", "background", 4, 0.6),
)


@dataclass(frozen=True, slots=True)
class Load:
    """A model server that writes so many answers at once, and for how long it is sent three times as many."""

    permits: int
    seconds: float
    seed: int

    @property
    def capacity_per_second(self) -> float:
        return self.permits / SERVICE_SECONDS

    def moments(self, crowd: Crowd) -> list[float]:
        """Return when a crowd sends, in seconds since the beginning."""
        chance = random.Random(f"{self.seed} {crowd.name}")
        per_second = crowd.times_capacity * self.capacity_per_second
        gaps = iter(lambda: chance.expovariate(per_second), None)
        return list(takewhile(lambda moment: moment < self.seconds, accumulate(gaps)))


@dataclass(frozen=True, slots=True)
class Sending:
    """One message: of whom, and what came of it."""

    crowd: Crowd
    answer: Answer

    @property
    def is_refused(self) -> bool:
        return self.answer.body.startswith(b"HTTP/1.1 503") and b"retry-after:" in self.answer.body.lower()

    @property
    def is_useful(self) -> bool:
        return self.answer.is_whole(TOKENS) and b'"finish_reason":"stop"' in self.answer.body

    @property
    def is_shortened(self) -> bool:
        return b"output_shortened" in self.answer.body

    @property
    def waited_seconds(self) -> float:
        """Return the time from the sending to the moment at which the model server began."""
        return (self.answer.tokens()[0].sent_ns - self.answer.asked_ns) / 1e9 - PREFILL_MS / 1000

    @property
    def answered_ms(self) -> float:
        return (self.answer.parts[-1][0] - self.answer.asked_ns) / 1e6

    @property
    def ended_ns(self) -> int:
        return self.answer.parts[-1][0]


async def send_all(port: int, load: Load, accounts: Mapping[Crowd, Sequence[Account]]) -> list[Sending]:
    """Lay the load on, and return once everything has been answered or refused. Each message has an account."""
    first_ns = time.monotonic_ns() + int(2 * _CONNECT_SECONDS * 1e9)
    due = [
        (first_ns + int(second * 1e9), crowd, account)
        for crowd, theirs in accounts.items()
        for second, account in zip(load.moments(crowd), theirs, strict=True)
    ]
    async with asyncio.TaskGroup() as group:
        tasks = []
        for due_ns, crowd, account in sorted(due, key=itemgetter(0)):
            await asyncio.sleep((due_ns - time.monotonic_ns()) / 1e9 - _CONNECT_SECONDS)
            tasks.append((crowd, group.create_task(_send(port, account, due_ns))))
    return [Sending(crowd, task.result()) for crowd, task in tasks]


async def _send(port: int, account: Account, due_ns: int) -> Answer:
    path = f"/v1/conversations/{account.conversation_id}/messages"
    request = Request(port, path, {"content": _PROMPT}, bearer=account.key)
    return await ask(request, due_ns=due_ns, timeout_seconds=_PATIENCE_SECONDS)
