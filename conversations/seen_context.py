"""What one answer's model saw, for people: the record of its prompt beside the texts as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models.functions import Left

from conversations import queries
from conversations.context.record import Record, UsedSummary, record_in
from conversations.models import Generation, Memory, Message, Preference, Summary

_BEGINNING_CHARACTERS = 200
"""So much of each message tells which one it is."""


@dataclass(frozen=True, slots=True)
class SeenMemory:
    """A memory that was told. `text` is what it says now; `None` where it has been deleted."""

    memory_id: UUID
    tokens: int
    text: str | None

    @property
    def is_deleted(self) -> bool:
        return self.text is None


@dataclass(frozen=True, slots=True)
class SeenSummary:
    """The summary that stood for what was left out."""

    summary_id: UUID
    epoch: int
    tokens: int
    text: str | None
    covers_up_to: UUID | None


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message that was in the prompt. `tokens` is `None` where it was never counted by itself."""

    message_id: UUID
    role: str
    tokens: int | None
    beginning: str


@dataclass(frozen=True, slots=True)
class SeenContext:
    """The parts of one prompt. Instructions are as they are now, `None` where the prompt had none."""

    record: Record
    user_instructions: str | None
    instructions: str | None
    memories: tuple[SeenMemory, ...]
    summary: SeenSummary | None
    messages: tuple[SeenMessage, ...]
    first_dropped: UUID | None
    last_dropped: UUID | None


def seen_context(generation: Generation) -> SeenContext | None:
    """Return what the model saw; `None` where that was not kept, as for answers that no model has begun."""
    record = record_in(generation.context)
    if record is None:
        return None
    kept, dropped = _kept_and_dropped(generation, record)
    return SeenContext(
        record=record,
        user_instructions=_standing_instructions(generation) if record.user_instructions_tokens else None,
        instructions=generation.conversation.instructions if record.instructions_tokens else None,
        memories=_memories(generation, record),
        summary=_summary(generation, record.summary) if record.summary else None,
        messages=_messages(kept, record.tokenizer),
        first_dropped=dropped[0] if dropped else None,
        last_dropped=dropped[-1] if dropped else None,
    )


def _kept_and_dropped(generation: Generation, record: Record) -> tuple[list[UUID], list[UUID]]:
    """Return the ids of the path's messages that were in the prompt, and of those that were not."""
    path = queries.branch_ids(generation.conversation, generation.message.parent_id)
    if record.tail_from not in path:
        return path, []
    head = path.index(record.head_up_to) + 1 if record.head_up_to in path else 0
    tail = path.index(record.tail_from)
    return path[:head] + path[tail:], path[head:tail]


def _messages(ids: Sequence[UUID], tokenizer: str) -> tuple[SeenMessage, ...]:
    beginning = Left("content", _BEGINNING_CHARACTERS)
    found = Message.objects.filter(pk__in=ids).exclude(content="")
    rows = {row[0]: row[1:] for row in found.values_list("id", "role", "token_counts", beginning)}
    told = ((each, *rows[each]) for each in ids if each in rows)
    return tuple(SeenMessage(each, role, counts.get(tokenizer), text) for each, role, counts, text in told)


def _standing_instructions(generation: Generation) -> str:
    found = Preference.objects.filter(user_id=generation.user_id).values_list("instructions", flat=True)
    return found.first() or ""


def _memories(generation: Generation, record: Record) -> tuple[SeenMemory, ...]:
    if not record.memories:
        return ()
    ids = [used.memory_id for used in record.memories]
    texts = dict(Memory.objects.owned_by(generation.user_id).filter(pk__in=ids).values_list("pk", "content"))
    return tuple(SeenMemory(used.memory_id, used.tokens, texts.get(used.memory_id)) for used in record.memories)


def _summary(generation: Generation, used: UsedSummary) -> SeenSummary:
    row = Summary.objects.filter(pk=used.summary_id, conversation=generation.conversation_id).first()
    text, covers_up_to = (row.text, row.covers_up_to_id) if row else (None, None)
    return SeenSummary(used.summary_id, used.epoch, used.tokens, text, covers_up_to)
