"""One attempt's answer while it is written: its prompt, its stream, what is known of it, how it ends."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import orjson
from django.utils import timezone

from accounts.pricing import Prices, cost_of
from conversations.context.fitting import Fitted, fit
from conversations.context.material import Material
from conversations.context.prompt import assemble
from conversations.models import Message
from conversations.services.admission import NOTICES
from conversations.services.attempts import Attempt
from conversations.services.known_answers import FROM_CACHE, KnownAnswers
from conversations.services.live_replies import LiveReply
from conversations.services.outcomes import Outcome
from conversations.services.recounting import tokens_decoded_by_others, tokens_of
from foundation.text import made_storable
from inference.catalog import Model, ModelVersion
from inference.events import Finished, Piece, Reasoning, StreamEvent
from inference.failover import Chosen, Progress, stream_answer
from inference.fleet import Fleet
from inference.messages import ChatRequest, SamplingOptions
from inference.permits import Permit
from inference.prefixes import prefix_of
from inference.replica_state import ReplicaState
from inference.router import versions_in_order
from inference.token_counting import counter_of
from inference.token_stream import StreamedEvent

_RESUMED = ("resumed_on_another_replica", "The model server was interrupted; the answer goes on.")
_TRIMMED = ("context_trimmed", "The conversation is longer than the model can read; older messages were left out.")


@dataclass(slots=True)
class Answer:
    """Writes a reply's text, and keeps the counts: an answer is paid by what was really read and decoded.

    One that the answer cache had is paid as it was the first time, all of its prompt as cached.
    """

    reply: LiveReply
    fleet: Fleet
    permit: Permit
    known_answers: KnownAnswers | None = None
    material: Material = field(default_factory=lambda: Material(()))
    fitted: Fitted | None = None
    """The prompt as the present replica got it."""
    decoded_tokens: int = 0
    decoded_before: int = 0
    """Tokens of text that another replica or attempt wrote, which the present one reads as part of its prompt."""
    finished: Finished | None = None
    replica: ReplicaState | None = None
    version: ModelVersion | None = None
    """Which one answers; `model_version` is what it is called."""
    model_version: str = ""
    is_known: bool = False
    """Whether the answer cache had it: then no model server was asked."""
    _notices: set[str] = field(default_factory=set)

    async def write(self, material: Material) -> None:
        """Write the answer to its end, from the text that the writer has on.

        Raise `ContentTooLong`, `UnknownModel`, or the last `ModelServerError` once no replica could go on.
        """
        attempt, writer = self.reply.attempt, self.reply.writer
        model = self.fleet.catalog.find(attempt.model)
        if not writer.text:
            for code in attempt.notices:
                if code in NOTICES:  # a newer web process may know more
                    self._notice_once(code, NOTICES[code])
        self.material = material
        if await self._write_known(model):
            return
        if writer.text:
            self.decoded_tokens = await tokens_decoded_by_others(self.fleet.of(model), assemble(material), writer.text)
        answer = stream_answer(
            self.fleet,
            model,
            self._request,
            so_far=Progress(writer.text, self.decoded_tokens),
            permit=self.permit,
            prefix=prefix_of(assemble(material)),
            hint=attempt.hint_replica,
            conversation_key=attempt.conversation_id.bytes,
            may_be_empty=any(said.role == "assistant" for said in material.path[-1:]),
        )
        async with aclosing(answer) as events:
            async for event in events:
                self._take(event)

    async def _write_known(self, model: Model) -> bool:
        """Write the answer as the answer cache has it; say whether it had it."""
        if self.known_answers is None or self.reply.writer.text:
            return False
        attempt = self.reply.attempt
        options = _sampling(attempt, max_new_tokens=int(attempt.options["max_tokens"]))
        known = await self.known_answers.find(self.material, options, self.fleet, model)
        if known is None:
            return False
        self.is_known, self.model_version = True, known.model_version
        self.version = versions_in_order(model, attempt.conversation_id.bytes)[0]
        self._take(Piece(known.text, 0))
        self._take(Finished("stop", known.tokens_in, known.tokens_in, known.tokens_out))
        return True

    async def keep(self, outcome: Outcome) -> None:
        """Give the answer cache what it may keep."""
        if self.known_answers is not None and not self.is_known:
            await self.known_answers.keep(outcome, self.replica)

    def _keep_nothing(self) -> None:
        if self.known_answers is not None:
            self.known_answers.keep_nothing()

    def _take(self, event: StreamEvent | Chosen) -> None:
        match event:
            case Piece():
                self.reply.first_token_at = self.reply.first_token_at or timezone.now()
                self.decoded_tokens += event.token_count
                self.reply.writer.write_text(made_storable(event.text))
            case Reasoning():
                self._keep_nothing()
                self.decoded_tokens += event.token_count
                self.reply.writer.write_event("reasoning", text=made_storable(event.text))
            case Chosen():
                if event.is_resumed:
                    self._keep_nothing()
                    self.reply.writer.write_event("notice", code=_RESUMED[0], message=_RESUMED[1])
            case Finished():
                self.finished = event

    async def _request(self, state: ReplicaState, progress: Progress) -> ChatRequest:
        self.replica, self.version, self.model_version = state, state.version, _version_of(state)
        self.decoded_before = progress.decoded_tokens
        self.fitted = fitted = await self._fit(state, progress)
        if fitted.record.is_trimmed:
            self._keep_nothing()
        if fitted.is_trimmed and not self._was_trimmed:
            self._notice_once(*_TRIMMED)
        return ChatRequest(
            fitted.messages,
            _sampling(self.reply.attempt, max_new_tokens=fitted.max_new_tokens),
            request_id=str(self.reply.attempt.generation_id),
            model=state.model_id,
        )

    async def _fit(self, state: ReplicaState, progress: Progress) -> Fitted:
        return await fit(
            self.material,
            counter=counter_of(state),
            window_tokens=window_tokens_of(state),
            answer_tokens=max(1, self._most_answer_tokens(state) - progress.decoded_tokens),
            so_far=progress.text,
        )

    @property
    def _was_trimmed(self) -> bool:
        """Whether the user was told in an earlier turn that something is left out."""
        return self.material.previous is not None and self.material.previous.is_trimmed

    def _most_answer_tokens(self, state: ReplicaState) -> int:
        wanted = int(self.reply.attempt.options["max_tokens"])
        return min(wanted, state.version.max_answer_tokens or wanted)

    def tell_no_more(self, published: Sequence[StreamedEvent]) -> None:
        """Do not repeat the notices that an earlier attempt has told."""
        self._notices |= {orjson.loads(event.data)["code"] for event in published if event.type == "notice"}

    def _notice_once(self, code: str, message: str) -> None:
        if code not in self._notices:
            self._notices.add(code)
            self.reply.writer.write_event("notice", code=code, message=message)

    def complete(self) -> Outcome:
        """Return the outcome of an answer that was written to its end."""
        finished = self.finished
        assert finished is not None
        decoded = self.decoded_tokens
        if finished.tokens_out is not None:
            decoded = self.decoded_before + finished.tokens_out
        return self._outcome(
            Message.Status.COMPLETE,
            finished.reason,
            tokens_in=max(0, (finished.tokens_in or 0) - self.decoded_before),
            tokens_cached=finished.tokens_cached or 0,
            tokens_out=decoded,
        )

    @property
    def is_uncounted(self) -> bool:
        """Whether there is text of which this attempt knows only that others wrote it."""
        return bool(self._text) and self.fitted is None and not self.is_known

    async def take_stock(self, material: Material) -> None:
        """Count what others read and decoded, where nothing is written any more. Raise what `write` raises."""
        self.material = material
        states = self.fleet.of(self.fleet.catalog.find(self.reply.attempt.model))
        self.decoded_tokens = await tokens_decoded_by_others(states, assemble(material), self._text)
        for state in states[:1]:
            self.replica, self.version, self.model_version = state, state.version, _version_of(state)
            self.fitted = await self._fit(state, Progress("", 0))

    async def cancelled(self) -> Outcome:
        """Return the outcome of an answer that was stopped: it keeps, and pays, what was written."""
        read = await self._prompt_tokens() if self.decoded_tokens else 0
        return self._outcome(Message.Status.CANCELLED, "cancelled", tokens_in=read, tokens_out=self.decoded_tokens)

    def failed(self, code: str, message: str) -> Outcome:
        """Return the outcome of an answer that could not be written: it keeps what there is, and pays nothing."""
        return self._outcome(Message.Status.FAILED, "error", error_code=code, error_message=message)

    def _outcome(
        self,
        status: Message.Status,
        finish_reason: str,
        *,
        tokens_in: int = 0,
        tokens_cached: int = 0,
        tokens_out: int = 0,
        error_code: str = "",
        error_message: str = "",
    ) -> Outcome:
        return Outcome(
            status=status,
            finish_reason=finish_reason,
            content=self._text,
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_out=tokens_out,
            cost=cost_of(self._prices, tokens_in, tokens_cached, tokens_out),
            first_token_at=self.reply.first_token_at,
            replica=self._answered_by,
            model_version=self.model_version,
            error_code=error_code,
            error_message=error_message,
            record=self.fitted.record if self.fitted else None,
        )

    @property
    def _text(self) -> str:
        # One that is stopped before it could take over has nothing in the writer yet.
        return self.reply.writer.text or self.reply.attempt.checkpointed_text

    @property
    def _prices(self) -> Prices:
        """What the version that answered costs; one that stands in for a cached answer costs the same."""
        if self.version is None:
            return Prices()
        prices = self.version.prices
        return Prices(prices.tokens_in, prices.tokens_cached, prices.tokens_out)

    @property
    def _answered_by(self) -> str:
        if self.is_known:
            return FROM_CACHE
        return self.replica.replica.url if self.replica else ""

    async def _prompt_tokens(self) -> int:
        """Return the prompt's tokens, which a server reports only at the end that this answer did not reach."""
        if self.replica is None or self.fitted is None:
            return 0
        return await tokens_of(self.replica, assemble(self.material, self.fitted.record)) or 0


def _version_of(state: ReplicaState) -> str:
    """Return what an answer's version is called: the pinned one's name, or what the server says that it runs."""
    return state.version.name if state.version.is_pinned or state.info is None else state.info.model_id


def window_tokens_of(state: ReplicaState) -> int | None:
    """Return how many tokens a replica reads and writes at most; `None` where nobody says."""
    told = state.info.max_total_tokens if state.info else None
    return min((tokens for tokens in (state.version.context_tokens, told) if tokens), default=None)


def _sampling(attempt: Attempt, *, max_new_tokens: int) -> SamplingOptions:
    options = attempt.options
    return SamplingOptions(
        max_new_tokens=max_new_tokens,
        temperature=options.get("temperature"),
        top_p=options.get("top_p"),
        seed=options.get("seed"),
        stop=tuple(options.get("stop") or ()),
    )
