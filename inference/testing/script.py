"""What a stream will do, step by step: the bytes, the pauses, the way it ends."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class Then(Enum):
    """What follows a step: the next one, a pause without keep-alives, waiting for release, or the connection's end."""

    GO_ON = auto()
    SILENCE = auto()
    HOLD = auto()
    HOLD_SILENTLY = auto()
    FIN = auto()
    RESET = auto()


class Step(NamedTuple):
    """Bytes to send now, the pause after them in milliseconds, and how many tokens they are."""

    payload: bytes
    pause_ms: float = 0.0
    token_count: int = 0
    then: Then = Then.GO_ON


type Script = Iterator[Step]
"""Advanced only when a step is due. One that runs out ends the body as HTTP wants it ended."""


def up_to(script: Script, token_count: int) -> Script:
    """The script until so many tokens are sent; the rest of it is left to the caller."""
    sent = 0
    while sent < token_count:
        step = next(script, None)
        if step is None:
            return
        sent += step.token_count
        yield step
