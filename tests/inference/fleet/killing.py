"""Answers of which each has the replica that writes it killed, at a random token."""

import asyncio
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from inference.events import Finished, Piece
from inference.failover import Chosen
from inference.testing.answers import expected_answer
from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.inference.fleet.replicas import prompt, text_of

TOKENS = 120


class Killed:
    """A twin in a process of its own that is started again whenever it was killed."""

    def __init__(self, process):
        self.process = process
        self.url = process.url
        self.kills = 0
        self._is_changing = asyncio.Lock()

    async def kill(self):
        async with self._is_changing:
            self.kills += 1
            await asyncio.to_thread(self.process.kill)
            await asyncio.to_thread(self.process.start)


@dataclass
class Toll:
    """What the killing did to the answers."""

    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    moves: int = 0
    longest_silence_seconds: list[float] = field(default_factory=list)


@contextmanager
def processes(count, **settings):
    with ExitStack() as stack:
        wanted = TwinSettings(**{"token_ms": 4.0, "prefill_ms": 5.0, **settings})
        yield [Killed(stack.enter_context(twin_process(wanted))) for _ in range(count)]


async def answer_while_killing(fleet, dice, *, answers, at_once):
    """Have so many answers written, `at_once` at a time, and during each kill the replica that writes it."""
    toll, numbers = Toll(), iter(range(answers))

    async def lane():
        for number in numbers:
            await _one(fleet, toll, number, after=dice.randrange(TOKENS - 1))

    await asyncio.gather(*(lane() for _ in range(at_once)))
    toll.kills = sum(twin.kills for twin in fleet.twins)
    return toll


async def _one(fleet, toll, number, *, after):
    asked = prompt(tokens=TOKENS) + f" {number}"
    by_url = {twin.url: twin for twin in fleet.twins}
    events = _Watched(after)
    asking = asyncio.create_task(fleet.answer(asked, patience_seconds=60, max_new_tokens=1000, events=events))
    asking.add_done_callback(lambda _: events.reached.set())
    await events.reached.wait()
    await by_url[events.chosen[-1].replica.url].kill()
    await asking
    if text_of(events) != expected_answer(asked) or not isinstance(events[-1], Finished):
        toll.wrong.append(asked)
    toll.moves += len(events.chosen) - 1
    toll.longest_silence_seconds.append(events.longest_silence_seconds)


class _Watched(list):
    """The events of an answer; says when so many pieces of it have come."""

    def __init__(self, after):
        super().__init__()
        self.after = after
        self.reached = asyncio.Event()
        self.chosen = []
        self.pieces = 0
        self.longest_silence_seconds = 0.0
        self.last_at = None

    def append(self, event):
        super().append(event)
        now = asyncio.get_running_loop().time()
        self.longest_silence_seconds = max(self.longest_silence_seconds, now - (self.last_at or now))
        self.last_at = now
        if isinstance(event, Chosen):
            self.chosen.append(event)
        self.pieces += isinstance(event, Piece)
        if self.pieces > self.after:
            self.reached.set()
