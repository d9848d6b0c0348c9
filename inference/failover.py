"""One answer, from as many replicas as it takes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count

import structlog

from inference import metrics
from inference.catalog import Model, ModelVersion, Replica
from inference.events import Finished, Piece, StreamEvent
from inference.fleet import Fleet
from inference.messages import ChatRequest
from inference.metrics import TokenPace, replica_label
from inference.permits import Offer, Permit
from inference.prefixes import Prefix
from inference.replica_state import ReplicaState
from inference.router import versions_in_order
from inference.tgi.errors import GenerationFailed, ModelServerError, Stalled, Unreachable
from inference.tracing import one_try
from inference.watch import Watch

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 60.0
"""How long a request may go without progress, over all its tries, before it is given up."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 0.1
"""New jobs are held up meanwhile, so a place that becomes free must not stay so for long."""
_MOST_FRUITLESS_TRIES = 3
"""A request whose answer has begun and ended without text so often in a row would do so for ever."""
_MOST_MOVES = 2
"""A request taken from so many silent replicas in a row may well be what silences them: it is left where it is."""
_PREFILL_CHARACTERS_PER_SECOND = 8_000
_LONGEST_PREFILL_SECONDS = 30.0

_numbers = count()


@dataclass(frozen=True, slots=True)
class Progress:
    """What there is of the answer when a replica is asked: its text, and how many tokens were decoded for it."""

    text: str
    decoded_tokens: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A replica has begun to answer. `is_resumed` says that another one wrote the beginning."""

    replica: Replica
    version: ModelVersion
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
    permit: Permit,
    prefix: Prefix = (),
    hint: str = "",
    conversation_key: bytes = b"",
    may_be_empty: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncGenerator[StreamEvent | Chosen]:
    """Yield the events of one whole answer; use it within `aclosing`.

    A replica that refuses, dies or stands still is left for another, which continues the text so far; a replica that
    comes back is tried again. Raise the last `ModelServerError` when the request itself is wrong or patience is at its
    end. `prefix` and `hint` say where the prompt's beginning may be cached; `conversation_key` which version to prefer.
    `may_be_empty` is for what continues an earlier answer: the model may find that there is nothing to add.
    """
    answer = _Answer(
        fleet, model, permit, prefix, hint, conversation_key, may_be_empty, [so_far.text], so_far.decoded_tokens
    )
    while True:
        state = await _find_place(answer, patience_seconds)
        try:
            async with aclosing(_from_one(state, build, answer)) as events:
                async for event in events:
                    yield event
                state.health.succeed()
                return
        except ModelServerError as error:
            log.warning(
                "replica_failed", replica=state.replica.url, code=error.code, decoded_tokens=answer.decoded_tokens
            )
            answer.note_failure(state, error)
            if not error.retryable or answer.is_hopeless(patience_seconds):
                raise


class EmptyAnswer(GenerationFailed):
    """The server ended an answer properly without having said anything: a fault, not an answer."""

    code = "empty_answer"


@dataclass(slots=True)
class _Answer:
    """What the tries so far have brought, and how they fared. `failed` are the replicas not to be asked just now."""

    fleet: Fleet
    model: Model
    permit: Permit
    prefix: Prefix
    hint: str
    conversation_key: bytes
    may_be_empty: bool
    text: list[str]
    decoded_tokens: int
    number: int = field(default_factory=_numbers.__next__)
    failed: set[str] = field(default_factory=set)
    last_error: ModelServerError | None = None
    fruitless_tries: int = 0
    moves: int = 0
    last_progress: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    pause_seconds: float = _FIRST_PAUSE_SECONDS

    @property
    def progress(self) -> Progress:
        return Progress("".join(self.text), self.decoded_tokens)

    def watch(self, request: ChatRequest) -> Watch:
        """Return what watches over the next try."""
        characters = sum(len(message.content) for message in request.messages)
        seconds = min(_LONGEST_PREFILL_SECONDS, characters / _PREFILL_CHARACTERS_PER_SECOND)
        return Watch(prefill_seconds=seconds, is_patient=self.moves >= _MOST_MOVES)

    def begin(self, state: ReplicaState) -> Chosen:
        """Note that a replica answers; until it has brought text, in vain."""
        self.fruitless_tries += 1
        is_resumed = bool(self.decoded_tokens or any(self.text))
        model_id = state.info.model_id if state.info else None
        return Chosen(state.replica, state.version, model_id, is_resumed)

    def take(self, event: StreamEvent) -> None:
        if isinstance(event, Finished):
            if not self.may_be_empty and not any(self.text):
                raise EmptyAnswer("the answer has no text")
            return
        self.decoded_tokens += event.token_count
        self.last_progress, self.pause_seconds = asyncio.get_running_loop().time(), _FIRST_PAUSE_SECONDS
        self.failed.clear()
        self.moves = 0
        # What was thought aloud cannot be continued, only text can.
        if isinstance(event, Piece) and event.text:
            self.text.append(event.text)
            self.fruitless_tries = 0

    def count_warmth(self, state: ReplicaState) -> None:
        """Count how much of the prompt the replica holds, as far as is known."""
        url, blocks, alias = state.replica.url, len(self.prefix), self.model.alias
        held = self.fleet.router.held(url, self.prefix)
        metrics.PREFIX_BLOCKS.labels(alias, "true").inc(held)
        metrics.PREFIX_BLOCKS.labels(alias, "false").inc(blocks - held)
        if self.hint:
            is_warm = url == self.hint or 2 * held > blocks
            metrics.FOLLOW_UPS.labels(alias, "warm" if is_warm else "cold").inc()

    def told_of_a_try(self, state: ReplicaState) -> dict[str, str | bool]:
        """Return what a trace tells of a request to this replica."""
        return {
            "gen_ai.request.model": self.model.alias,
            "chat.version": state.version.name,
            "chat.is_resumed": bool(self.decoded_tokens or any(self.text)),
        }

    def note_failure(self, state: ReplicaState, error: ModelServerError) -> None:
        metrics.FAILOVERS.labels(self.model.alias, replica_label(state.replica.url), error.code).inc()
        self.last_error = error
        self.failed.add(state.replica.url)
        self.fleet.note_failure(state, error, answer=self.number)

    def is_hopeless(self, patience_seconds: float) -> bool:
        waited = asyncio.get_running_loop().time() - self.last_progress
        return waited >= patience_seconds or self.fruitless_tries >= _MOST_FRUITLESS_TRIES

    async def pause(self, longest_seconds: float) -> None:
        """Wait, longer each time."""
        await asyncio.sleep(min(longest_seconds, self.pause_seconds))
        self.pause_seconds = min(_LONGEST_PAUSE_SECONDS, self.pause_seconds * 2)


async def _find_place(answer: _Answer, patience_seconds: float) -> ReplicaState:
    """Return a replica of which a permit is held now. Raise the last error once patience is at its end."""
    fleet = answer.fleet
    while True:
        model = fleet.current(answer.model)
        offers = _offers(answer, model)
        if offers:
            # All in one call: a place that was reserved at the last of them is not given up to look at the first.
            url = await answer.permit.exchange(offers)
            if url is not None and (state := fleet.states.get(url)) is not None:
                return state
        if answer.is_hopeless(patience_seconds):
            raise answer.last_error or Unreachable(f"no replica of {model.alias} is available")
        if offers:
            with fleet.waiting_for_a_place(model):
                await answer.pause(_LONGEST_WAIT_SECONDS)
        else:
            # Those that failed are asked once more, after ever longer pauses.
            await answer.pause(_LONGEST_PAUSE_SECONDS if answer.failed else _LONGEST_WAIT_SECONDS)
            answer.failed.clear()


def _offers(answer: _Answer, model: Model) -> list[Offer]:
    """Return the replicas that can be asked now, version by version, of each the best first."""
    fleet, offers = answer.fleet, []
    for version in versions_in_order(model, answer.conversation_key):
        candidates = fleet.candidates(version.replicas, without=frozenset(answer.failed))
        permits = {each.url: each.permits for each in candidates}
        urls = fleet.router.order(candidates, answer.prefix, hint=answer.hint)
        # Where the best are full, the place that was reserved with the job is still there.
        if (held := answer.permit.url) in permits and held not in urls:
            urls.append(held)
        offers += [Offer(url, permits[url]) for url in urls]
    return offers


async def _from_one(state: ReplicaState, build: BuildRequest, answer: _Answer) -> AsyncGenerator[StreamEvent | Chosen]:
    request = await build(state, answer.progress)
    watch = answer.watch(request)
    answer.count_warmth(state)
    answer.fleet.router.note(state.replica.url, answer.prefix)
    with state.watching(watch) as server, one_try(state.replica.url, answer.told_of_a_try(state)):
        pace = TokenPace(model=answer.model.alias, version=state.version.name, url=state.replica.url)
        has_begun = False
        try:
            async with aclosing(server.stream_chat(request, watch)) as events:
                async for event in events:
                    if not has_begun:
                        has_begun = True
                        yield answer.begin(state)
                    answer.take(event)
                    pace.token()
                    yield event
        except Stalled:
            answer.moves += watch.is_abandoned
            raise
