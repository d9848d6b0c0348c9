"""Answers that are stopped while they are written, each at a token of its own."""

import asyncio
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.client import END_OF_HEAD, Answer, Exchange, Request, connected
from tests.benchmarks.product import Account

TOKEN_MS = 100
PREFILL_MS = 50
MOST_TOKENS = 4000
"""No answer ends by itself before it is stopped."""
_CONNECT_SECONDS = 0.2
_PATIENCE_SECONDS = 60
_GENERATION_ID = re.compile(rb'"generation_id": ?"([0-9a-f-]{36})"')


@dataclass(slots=True)
class Stopping:
    """One answer that is stopped after so many of its tokens, and when what happened, by the monotonic clock."""

    number: int
    after_tokens: int
    answer: Answer
    generation_id: str = ""
    called_ns: int = 0
    called: Answer = field(default_factory=lambda: Answer(0))
    done_ns: int = 0

    @property
    def prompt(self) -> str:
        wishes = f'{{"stamp": true, "tokens": {MOST_TOKENS}, "token_ms": {TOKEN_MS}, "prefill_ms": {PREFILL_MS}}}'
        return f"@twin {wishes}\n{self.number}"

    @property
    def is_answered(self) -> bool:
        return self.called.body.startswith(b"HTTP/1.1 204")

    @property
    def answered_ms(self) -> float:
        return (self.called.parts[-1][0] - self.called_ns) / 1e6

    @property
    def done_ms(self) -> float:
        return (self.done_ns - self.called_ns) / 1e6


async def stop_all(
    port: int, accounts: Sequence[Account], *, answers_per_second: float, latest_token: int, seed: int
) -> list[Stopping]:
    """Begin an answer for each account at a steady rate, and stop each after a random one of its tokens.

    With 0 as the latest token each is stopped as soon as its id is known.
    """
    chance = random.Random(seed)
    first_ns = time.monotonic_ns() + int(2 * _CONNECT_SECONDS * 1e9)
    stoppings = [
        Stopping(
            number,
            chance.randint(min(1, latest_token), latest_token),
            Answer(first_ns + int(number / answers_per_second * 1e9)),
        )
        for number in range(len(accounts))
    ]
    async with asyncio.TaskGroup() as group:
        for account, stopping in zip(accounts, stoppings, strict=True):
            await asyncio.sleep((stopping.answer.due_ns - time.monotonic_ns()) / 1e9 - _CONNECT_SECONDS)
            group.create_task(_stop_one(port, account, stopping))
    return stoppings


async def _stop_one(port: int, account: Account, stopping: Stopping) -> None:
    """Begin an answer, stop it at its token, and read the stream to its end. What fails shows in what is missing."""
    answer = stopping.answer
    reached, on_data = _counting(stopping.after_tokens)
    stream = Exchange(answer, on_data=on_data)
    call = Exchange(stopping.called, end=END_OF_HEAD)
    path = f"/v1/conversations/{account.conversation_id}/messages"
    async with connected(port, stream) as transport, connected(port, call) as calling:
        encoded = Request(port, path, {"content": stopping.prompt}, bearer=account.key).encoded()
        await asyncio.sleep((answer.due_ns - time.monotonic_ns()) / 1e9)
        answer.asked_ns = time.monotonic_ns()
        transport.write(encoded)
        await asyncio.wait([reached, stream.ended], timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        found = _GENERATION_ID.search(answer.body)
        if found is None:
            return
        stopping.generation_id = found[1].decode()
        path = f"/v1/generations/{stopping.generation_id}/cancel"
        encoded = Request(port, path, {}, bearer=account.key, accept="*/*").encoded()
        stopping.called_ns = time.monotonic_ns()
        calling.write(encoded)
        await asyncio.wait([stream.ended, call.ended], timeout=_PATIENCE_SECONDS)
    stopping.done_ns = answer.parts[-1][0]


def _counting(tokens: int) -> tuple[asyncio.Future[None], Callable[[bytes], None]]:
    """Return a future that is done when so many token events have come, and what counts them."""
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = tokens

    def on_data(data: bytes) -> None:
        nonlocal left
        left -= data.count(b"event: token")
        if left <= 0 and not reached.done() and (tokens or b"generation_id" in data):
            reached.set_result(None)

    return reached, on_data
