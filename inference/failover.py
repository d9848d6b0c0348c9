"""One answer, from as many replicas as it takes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from inference import router
from inference.catalog import Model, Replica
from inference.events import Finished, Piece, StreamEvent
from inference.fleet import Fleet, ReplicaState
from inference.messages import ChatRequest
from inference.tgi.errors import GenerationFailed, ModelServerError

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 60.0
"""How long a request may go without progress, over all its tries, before it is given up."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_FRUITLESS_TRIES = 3
"""A request whose answer has begun and ended without text so often in a row would do so for ever."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What there is of the answer when a replica is asked: its text, and how many tokens were decoded for it."""

    text: str
    decoded_tokens: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A replica has begun to answer. `is_resumed` says that another one wrote the beginning."""

    replica: Replica
    model_id: str | None
    is_resumed: bool


type BuildRequest = Callable[[ReplicaState, Progress], Awaitable[ChatRequest]]
"""Makes the request to a replica: with text so far, that text is its last, assistant message, to be continued."""


async def stream_answer(
    fleet: Fleet,
    model: Model,
    build: BuildRequest,
    *,
    so_far: Progress,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncGenerator[StreamEvent | Chosen]:
    """Yield the events of one whole answer; use it within `aclosing`.

    A replica that refuses or dies is left for another, which continues the text so far; a replica that comes back is
    tried again. Raise the last `ModelServerError` when the request itself is wrong or patience is at its end.
    """
    answer = _Answer([so_far.text], so_far.decoded_tokens)
    while True:
        state = router.choose(fleet, model, failed=answer.failed)
        try:
            async with aclosing(_from_one(state, build, answer)) as events:
                async for event in events:
                    yield event
                return
        except ModelServerError as error:
            log.warning(
                "replica_failed", replica=state.replica.url, code=error.code, decoded_tokens=answer.decoded_tokens
            )
            if not error.retryable or answer.is_hopeless(patience_seconds):
                raise
            answer.failed.add(state.replica)
        if len(answer.failed) >= len(model.replicas):
            await answer.pause()


class EmptyAnswer(GenerationFailed):
    """The server ended an answer properly without having said anything: a fault, not an answer."""

    code = "empty_answer"


@dataclass(slots=True)
class _Answer:
    """What the tries so far have brought, and how they fared."""

    text: list[str]
    decoded_tokens: int
    failed: set[Replica] = field(default_factory=set)
    fruitless_tries: int = 0
    last_progress: float = field(default_factory=time.monotonic)
    pause_seconds: float = _FIRST_PAUSE_SECONDS

    @property
    def progress(self) -> Progress:
        return Progress("".join(self.text), self.decoded_tokens)

    def begin(self, state: ReplicaState) -> Chosen:
        """Note that a replica answers; until it has brought text, in vain."""
        self.fruitless_tries += 1
        is_resumed = bool(self.decoded_tokens or any(self.text))
        return Chosen(state.replica, state.info.model_id if state.info else None, is_resumed)

    def take(self, event: StreamEvent) -> None:
        if isinstance(event, Finished):
            if not any(self.text):
                raise EmptyAnswer("the answer has no text")
            return
        self.decoded_tokens += event.token_count
        self.last_progress, self.pause_seconds = time.monotonic(), _FIRST_PAUSE_SECONDS
        self.failed.clear()
        # What was thought aloud cannot be continued, only text can.
        if isinstance(event, Piece) and event.text:
            self.text.append(event.text)
            self.fruitless_tries = 0

    def is_hopeless(self, patience_seconds: float) -> bool:
        waited = time.monotonic() - self.last_progress
        return waited >= patience_seconds or self.fruitless_tries >= _MOST_FRUITLESS_TRIES

    async def pause(self) -> None:
        """Wait, longer each time, before every replica is tried once more."""
        await asyncio.sleep(self.pause_seconds)
        self.pause_seconds = min(_LONGEST_PAUSE_SECONDS, self.pause_seconds * 2)
        self.failed.clear()


async def _from_one(state: ReplicaState, build: BuildRequest, answer: _Answer) -> AsyncGenerator[StreamEvent | Chosen]:
    with state.one_request() as server:
        request = await build(state, answer.progress)
        has_begun = False
        async with aclosing(server.stream_chat(request)) as events:
            async for event in events:
                if not has_begun:
                    has_begun = True
                    yield answer.begin(state)
                answer.take(event)
                yield event
