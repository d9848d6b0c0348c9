"""The script of one stream: the answer's frames on the token clock, with the request's faults worked in."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from inference.testing.answers import Answer
from inference.testing.frames import Face, Token, tokens_of
from inference.testing.script import Script, Step


@dataclass(frozen=True, slots=True)
class Pace:
    """The token clock of one answer."""

    prefill_ms: float
    token_ms: float


def token_script(face: Face, tokens: Iterator[Token], pace: Pace) -> Script:
    """Prefill, then a token per tick; no pause after the last."""
    yield Step(b"", pace.prefill_ms)
    for frame in face.opening():
        yield Step(frame)
    for token in tokens:
        yield Step(face.token(token), 0.0 if token.finish is not None else pace.token_ms, 1)


def interleaved(scripts: list[Script]) -> Script:
    """Several prompts in one stream, a step of each in turn; the pauses are those of one."""
    left = list(scripts)
    while left:
        steps = [(script, next(script, None)) for script in left]
        left = [script for script, step in steps if step is not None]
        taken = [step for _, step in steps if step is not None]
        for number, step in enumerate(taken, start=1):
            yield step if number == len(taken) else step._replace(pause_ms=0.0)


def closed(script: Script, face: Face) -> Script:
    """The script and then, at once, whatever closes the stream."""
    yield from script
    for frame in face.closing():
        yield Step(frame)


def stamped(answer: Answer) -> Iterator[Token]:
    """The answer's tokens, each text the machine's monotonic nanoseconds at the moment it is sent."""
    for token in tokens_of(answer):
        yield token if token.is_special else token._replace(text=f" {time.monotonic_ns()}")
