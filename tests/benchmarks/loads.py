"""The loads that are measured, and how one is laid on a path."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.client import Answer, Request, ask

TOKENS_PER_SECOND = 10
PREFILL_MS = 50
_CONNECT_SECONDS = 0.2
_PATIENCE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Load:
    """Answers that are begun at a steady rate, whatever becomes of the earlier ones.

    What happens from `from_second` to `to_second` is measured, reckoned from the first request; there, as many streams
    are live as `title` says.
    """

    title: str
    answers: int
    answers_per_second: float
    tokens: int
    from_second: float
    to_second: float
    first_tokens_in_window: bool = True
    """Whether times to first token count within the window only; else all do, also those from before it."""

    def prompt(self) -> str:
        token_ms = 1000 / TOKENS_PER_SECOND
        return f'@twin {{"stamp": true, "tokens": {self.tokens}, "token_ms": {token_ms}, "prefill_ms": {PREFILL_MS}}}'


def streams(count: int, *, seconds: float, answers_per_second: float) -> Load:
    """So many streams, begun one after the other, and then all live for so many seconds."""
    ramp_seconds = count / answers_per_second
    tokens = round((ramp_seconds + seconds) * TOKENS_PER_SECOND)
    return Load(
        f"{count} streams", count, answers_per_second, tokens, ramp_seconds, ramp_seconds + seconds,
        first_tokens_in_window=False,
    )  # fmt: skip


def one_stream(answers: int) -> Load:
    """One stream at a time."""
    return Load("1 stream", answers, 0.9, TOKENS_PER_SECOND, 0, answers / 0.9)


def rate(answers_per_second: int, *, answer_seconds: float, seconds: float) -> Load:
    """New answers at a rate, measured once as many end as begin."""
    live = round(answers_per_second * answer_seconds)
    count = round(answers_per_second * (answer_seconds + seconds))
    tokens = round(answer_seconds * TOKENS_PER_SECOND)
    title = f"{answers_per_second} answers/s, {live} streams"
    return Load(title, count, answers_per_second, tokens, answer_seconds, answer_seconds + seconds)


FULL = (
    one_stream(8),
    streams(50, seconds=8, answers_per_second=50),
    streams(500, seconds=6, answers_per_second=50),
    rate(25, answer_seconds=6, seconds=8),
    rate(50, answer_seconds=6, seconds=8),
)
QUICK = (
    one_stream(4),
    streams(50, seconds=4, answers_per_second=50),
    streams(500, seconds=4, answers_per_second=50),
    rate(25, answer_seconds=2, seconds=5),
)


@dataclass(frozen=True, slots=True)
class Run[Reading]:
    """One load on one path: its answers, the window's bounds, and what the meter read at them."""

    load: Load
    answers: list[Answer]
    from_ns: int
    to_ns: int
    before: Reading
    after: Reading


async def lay_on[Reading](load: Load, requests: list[Request], read_meter: Callable[[], Reading]) -> Run[Reading]:
    """Send the requests at the load's times and return once every answer has ended."""
    first_ns = time.monotonic_ns() + int(2 * _CONNECT_SECONDS * 1e9)
    from_ns, to_ns = (first_ns + int(second * 1e9) for second in (load.from_second, load.to_second))
    patience_seconds = load.tokens / TOKENS_PER_SECOND + _PATIENCE_SECONDS
    async with asyncio.TaskGroup() as group:
        before = group.create_task(_read_at(from_ns, read_meter))
        after = group.create_task(_read_at(to_ns, read_meter))
        answers = []
        for number, request in enumerate(requests[: load.answers]):
            due_ns = first_ns + int(number / load.answers_per_second * 1e9)
            await asyncio.sleep((due_ns - time.monotonic_ns()) / 1e9 - _CONNECT_SECONDS)
            answers.append(group.create_task(ask(request, due_ns=due_ns, timeout_seconds=patience_seconds)))
    return Run(load, [answer.result() for answer in answers], from_ns, to_ns, before.result(), after.result())


async def _read_at[Reading](moment_ns: int, read_meter: Callable[[], Reading]) -> Reading:
    await asyncio.sleep((moment_ns - time.monotonic_ns()) / 1e9)
    return read_meter()
