"""What every kind of model server offers to the rest of the product."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from inference.events import StreamEvent
from inference.messages import ChatMessage, ChatRequest


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says about itself; `None` where it does not say."""

    model_id: str
    model_sha: str | None
    version: str | None
    max_input_tokens: int | None
    max_total_tokens: int | None
    max_concurrent_requests: int | None


class ModelServer(Protocol):
    """One replica. All but `is_healthy` raise `inference.tgi.errors.ModelServerError`."""

    def stream_chat(self, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """Yields the answer's events, `Finished` last; without `Finished` it raises. Use it within `aclosing`:

        closing the generator, or cancelling the task that runs it, closes the connection and so ends the computation.
        """
        ...

    async def is_healthy(self) -> bool:
        """Whether the server says that it is ready; that it also makes progress, only its streams can tell."""
        ...

    async def info(self) -> ServerInfo:
        """Which model the server runs, and its limits."""
        ...

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """How many tokens the server makes of `messages`, chat template included."""
        ...
