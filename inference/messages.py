"""What is said to a model: chat messages and the options of one request."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

type Role = Literal["system", "user", "assistant", "tool"]


class ChatMessage(NamedTuple):
    """One message of a prompt, as the chat template sees it. A tuple, because a long prompt has thousands."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How to sample; `None` leaves the choice to the model server.

    `temperature` 0 means greedy. `max_new_tokens` bounds the answer, its end-of-sequence token included.
    """

    max_new_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to one model server. A last message of role `assistant` is continued, not answered."""

    messages: tuple[ChatMessage, ...]
    options: SamplingOptions
    request_id: str
    model: str | None = None
    """The served model's name, for servers that demand one (OpenAI-compatible); TGI is never told."""
