"""Which answers may be shared through the answer cache: those to first messages with nothing of the user's own."""

from dataclasses import dataclass
from uuid import UUID

from conversations.context.material import Material
from conversations.context.prompt import assemble
from conversations.models import Conversation
from conversations.services.attempts import Attempt
from conversations.services.outcomes import Outcome
from foundation.database import DATABASE_UNREACHABLE, in_database
from inference.answer_cache import AnswerCache, KnownAnswer, Source, digest_of
from inference.catalog import Model
from inference.fleet import Fleet
from inference.messages import ChatMessage, SamplingOptions
from inference.replica_state import ReplicaState
from inference.router import versions_in_order

FROM_CACHE = "cache"
"""Stands for the replica of an answer that was given before."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """What others of a tier, the `scope`, may have asked in the same words, to be answered in the same way."""

    scope: str
    messages: tuple[ChatMessage, ...]
    options: SamplingOptions

    def digest(self, source: Source) -> str:
        return digest_of(source, self.messages, self.options, scope=self.scope)


@dataclass(slots=True)
class KnownAnswers:
    """The answer cache as one reply uses it: first to find its answer, else to keep it."""

    cache: AnswerCache
    attempt: Attempt
    _shared: _Shared | None = None

    async def find(
        self, material: Material, options: SamplingOptions, fleet: Fleet, model: Model
    ) -> KnownAnswer | None:
        """Return what the version that this conversation gets has answered before, if that may be given here."""
        if not self.cache.is_on or options.temperature != 0 or not _is_context_free(self.attempt, material):
            return None
        scope = await self._scope()
        if scope is None:
            return None
        self._shared = _Shared(scope, assemble(material), options)
        source = _source_for(self.attempt.conversation_id, fleet, model)
        return await self.cache.find(self._shared.digest(source)) if source else None

    async def _scope(self) -> str | None:
        try:
            return await in_database(_scope_of, self.attempt.conversation_id)
        except DATABASE_UNREACHABLE:
            return None  # the answer is written without it

    def keep_nothing(self) -> None:
        """The answer came about in a way that others need not share."""
        self._shared = None

    async def keep(self, outcome: Outcome, state: ReplicaState | None) -> None:
        """Keep an answer that its model ended itself, for others who ask the same."""
        source = _source_at(state) if state else None
        if self._shared is not None and source is not None and outcome.finish_reason == "stop":
            known = KnownAnswer(outcome.content, outcome.tokens_in, outcome.tokens_out, outcome.model_version)
            await self.cache.keep(self._shared.digest(source), known, written_for=self.attempt.generation_id)


def _is_context_free(attempt: Attempt, material: Material) -> bool:
    """Whether the prompt is the first thing said, under the instructions of the site, and holds nothing else."""
    is_first = attempt.number == 1 and len(material.path) == 1 and material.unread_messages == 0
    return is_first and material == Material(material.path, site_instructions=material.site_instructions)


def _scope_of(conversation_id: UUID) -> str | None:
    """Return the tier whose users may share the answer. Of temporary conversations nothing is kept for others."""
    conversations = Conversation.objects.filter(pk=conversation_id, temporary=False, user__tier__uses_answer_cache=True)
    return conversations.values_list("user__tier_id", flat=True).first()


def _source_for(conversation_id: UUID, fleet: Fleet, model: Model) -> Source | None:
    """Return what would answer this conversation; `None` while no replica of it has said what it serves."""
    version = versions_in_order(model, conversation_id.bytes)[0]
    states = (state for state in fleet.of(model) if state.version.name == version.name)
    return next((source for state in states if (source := _source_at(state))), None)


def _source_at(state: ReplicaState) -> Source | None:
    if state.info is None:
        return None
    return Source(state.version.name, state.info.model_id, state.info.model_sha or "")
