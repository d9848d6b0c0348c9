"""What a model server's stream says, whatever protocol it speaks."""

from dataclasses import dataclass
from typing import Literal

type StopReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of an answer. `token_count` is how many tokens the server decoded for it; 0 where it does not say."""

    text: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text that the model thinks aloud; not part of the answer."""

    text: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The stream's proper end. Token counts are `None` where the server does not report them."""

    reason: StopReason
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None


type StreamEvent = Piece | Reasoning | Finished
