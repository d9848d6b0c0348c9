"""What every kind of model server offers to the rest of the product."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from inference.events import StreamEvent
from inference.messages import ChatMessage, ChatRequest
from inference.server_load import ServerLoad
from inference.watch import Watch


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

    def stream_chat(self, request: ChatRequest, watch: Watch | None = None) -> AsyncGenerator[StreamEvent]:
        """Yields the answer's events, `Finished` last; without `Finished` it raises. Use it within `aclosing`:

        closing the generator, or cancelling the task that runs it, closes the connection and so ends the computation.
        `watch` is told of progress, and can abandon the request.
        """
        ...

    async def is_healthy(self) -> bool:
        """Whether the server says that it is ready; that it also makes progress, only its streams can tell."""
        ...

    async def load(self) -> ServerLoad | None:
        """How many requests the server has; `None` where it does not say."""
        ...

    async def info(self, wanted_id: str = "") -> ServerInfo:
        """Which model the server runs, and its limits: of several models the wanted one, where it is among them."""
        ...

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """How many tokens the server makes of `messages`, chat template included. `NotOffered` where it cannot say."""
        ...

    async def count_text(self, text: str) -> int:
        """How many tokens the server makes of a text, without those that it adds. `NotOffered` where it cannot say."""
        ...
