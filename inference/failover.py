"""One answer, from as many replicas as it takes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import structlog

from inference import router
from inference.catalog import Model, Replica
from inference.events import Finished, Piece, Reasoning, StreamEvent
from inference.fleet import Fleet, ReplicaState
from inference.messages import ChatRequest
from inference.tgi.errors import GenerationFailed, ModelServerError

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 60.0
"""How long a request may go without progress, over all its tries, before it is given up."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_EMPTY_ANSWERS = 2


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
    fleet: Fleet, model: Model, build: BuildRequest, *, so_far: Progress
) -> AsyncGenerator[StreamEvent | Chosen]:
    """Yield the events of one whole answer; use it within `aclosing`.

    A replica that refuses or dies is left for another, which continues the text so far; a replica that comes back is
    tried again. Raise the last `ModelServerError` when the request itself is wrong or patience is at its end.
    """
    text, decoded = [so_far.text], so_far.decoded_tokens
    failed: set[Replica] = set()
    last_progress = time.monotonic()
    pause_seconds, empty_answers = _FIRST_PAUSE_SECONDS, 0
    while True:
        state = router.choose(fleet, model, failed=failed)
        begun = False
        try:
            async with aclosing(_from_one(state, build, Progress("".join(text), decoded))) as events:
                async for event in events:
                    if not begun:
                        begun = True
                        yield Chosen(
                            state.replica, state.info.model_id if state.info else None, bool(text[0] or decoded)
                        )
                    if isinstance(event, Piece | Reasoning):
                        decoded += event.token_count
                        last_progress, pause_seconds = time.monotonic(), _FIRST_PAUSE_SECONDS
                        failed.clear()
                    if isinstance(event, Piece):
                        text.append(event.text)
                    if isinstance(event, Finished):
                        _check_not_empty(text)
                    yield event
                return
        except ModelServerError as error:
            empty_answers += isinstance(error, EmptyAnswer)
            log.warning("replica_failed", replica=state.replica.url, code=error.code, decoded_tokens=decoded)
            is_patient = time.monotonic() - last_progress < PATIENCE_SECONDS
            if not error.retryable or not is_patient or empty_answers >= _MOST_EMPTY_ANSWERS:
                raise
            failed.add(state.replica)
        if len(failed) >= len(model.replicas):
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(_LONGEST_PAUSE_SECONDS, pause_seconds * 2)
            failed.clear()


class EmptyAnswer(GenerationFailed):
    """The server ended an answer properly without having said anything: a fault, not an answer."""

    code = "empty_answer"


def _check_not_empty(text: list[str]) -> None:
    if not any(text):
        raise EmptyAnswer("the answer has no text")


async def _from_one(state: ReplicaState, build: BuildRequest, progress: Progress) -> AsyncGenerator[StreamEvent]:
    with state.one_request() as server:
        request = await build(state, progress)
        async with aclosing(server.stream_chat(request)) as events:
            async for event in events:
                yield event
