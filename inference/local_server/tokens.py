"""What the engine writes: tokens and the end, whatever the protocol that shows them."""

from dataclasses import dataclass
from typing import Literal

type FinishReason = Literal["length", "eos_token", "stop_sequence"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a given text, with the bytes it stands for."""

    id: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class AlternativeToken:
    """One of the likeliest tokens at a step."""

    id: int
    text: str
    logprob: float | None
    special: bool


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `text` is empty while a character is unfinished; `logprob` is `None` where it is not known."""

    id: int
    text: str
    logprob: float | None
    special: bool
    alternatives: tuple[AlternativeToken, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptRead:
    """The engine has begun: so many tokens of the prompt were in its cache."""

    cached_tokens: int


@dataclass(frozen=True, slots=True)
class EngineStopped:
    """The engine's own end. `lost_tokens` of them belong to a character that was never finished."""

    at_end_of_text: bool
    lost_tokens: int


type EngineEvent = PromptRead | Token | EngineStopped


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known when the last token is written. Times in seconds."""

    finish_reason: FinishReason
    generated_text: str
    generated_tokens: int
    seed: int | None
    input_tokens: int
    cached_tokens: int
    queue_seconds: float
    inference_seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """One token of an answer; `ending` comes with the last."""

    index: int
    token: Token
    ending: Ending | None = None
