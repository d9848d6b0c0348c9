"""What the templates show, worked out beforehand, so that they carry no logic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import chain
from uuid import UUID

from django.db.models import Q, prefetch_related_objects
from django.utils.safestring import SafeString

from conversations.markdown import render
from conversations.models import Conversation, Generation, Memory, Message
from conversations.services.admission import NOTICES
from foundation.pages import Page
from inference.positions import Position

_ORIGINS: dict[str, str] = {
    Memory.Origin.ASKED: "You asked for it",
    Memory.Origin.WRITTEN: "You wrote it here",
    Memory.Origin.PROPOSED: "Proposed by the model",
}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One row of a conversation. `html` is the answer's Markdown; a user's message is shown as it was written.

    An answer that was cut off and continued is one row: that of its last message, with the text of all of them.
    `notices` are what its reader was told of it when it was asked for; of one without text yet the script tells.
    """

    message: Message
    parent_id: UUID | None
    text: str
    html: SafeString | None
    event_id: int
    error: str
    notices: tuple[str, ...]
    is_last: bool


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said below an answer."""

    error: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """A generation under way that the page's script follows; `event_id` is where the text it shows has got to."""

    generation_id: UUID
    conversation_id: UUID
    event_id: int


@dataclass(frozen=True, slots=True)
class ShownConversation:
    """One row of the sidebar."""

    conversation: Conversation
    is_current: bool
    is_answering: bool


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """One row of the page of memories. `text` is in its field; `expires_on` is the last day on which it is used."""

    memory: Memory
    origin: str
    text: str
    expires_on: date | None


def shown_messages(messages: Sequence[Message]) -> list[ShownMessage]:
    """Return the rows of a branch, oldest first."""
    told = _told_of(messages)
    rows = _rows(messages)
    return [_shown(parts, [told.get(part.id, _Told()) for part in parts], is_last=parts is rows[-1]) for parts in rows]


def _rows(messages: Iterable[Message]) -> list[list[Message]]:
    """Return each message by itself, but the parts of one answer together."""
    rows: list[list[Message]] = []
    for message in messages:
        is_answer = message.role == Message.Role.ASSISTANT
        if is_answer and rows and rows[-1][-1].role == Message.Role.ASSISTANT:
            rows[-1].append(message)
        else:
            rows.append([message])
    return rows


def _shown(parts: Sequence[Message], told: Sequence[_Told], *, is_last: bool) -> ShownMessage:
    message, text = parts[-1], "".join(part.content for part in parts)
    has_all_to_come = message.is_under_way and not message.content
    return ShownMessage(
        message,
        parts[0].parent_id,
        text,
        render(text) if message.role == Message.Role.ASSISTANT else None,
        Position.of_text(message.content).event_id,
        told[-1].error,
        tuple(chain.from_iterable(each.notices for each in (told[:-1] if has_all_to_come else told))),
        is_last,
    )


def _told_of(messages: Iterable[Message]) -> dict[UUID, _Told]:
    ids = [message.id for message in messages if message.role == Message.Role.ASSISTANT]
    found = Generation.objects.filter(~Q(notices=[]) | ~Q(error_message=""), message_id__in=ids)
    return {
        message_id: _Told(error, tuple(NOTICES[code] for code in codes if code in NOTICES))
        for message_id, error, codes in found.values_list("message_id", "error_message", "notices")
    }


def followed(generations: Sequence[Generation]) -> list[Followed]:
    """Return what the page's script has to follow besides the answers that it shows."""
    prefetch_related_objects(generations, "message")
    return [
        Followed(
            generation.message_id, generation.conversation_id, Position.of_text(generation.message.content).event_id
        )
        for generation in generations
    ]


def shown_memories(memories: Iterable[Memory]) -> list[ShownMemory]:
    """Return the rows of the page of memories."""
    return [ShownMemory(memory, _ORIGINS[memory.origin], memory.content, _last_day(memory)) for memory in memories]


def _last_day(memory: Memory) -> date | None:
    """Return the last day, in UTC, on some of which a memory is in force."""
    return (memory.expires_at - timedelta(microseconds=1)).astimezone(UTC).date() if memory.expires_at else None


def shown_conversations(
    page: Page[Conversation], *, current_id: UUID | None, answering: Iterable[Followed]
) -> list[ShownConversation]:
    """Return the sidebar's rows."""
    busy = {one.conversation_id for one in answering}
    return [
        ShownConversation(conversation, conversation.id == current_id, conversation.id in busy)
        for conversation in page.items
    ]
