"""What the templates show, worked out beforehand, so that they carry no logic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.utils.safestring import SafeString

from conversations.markdown import render
from conversations.models import Conversation, Generation, Message
from foundation.pages import Page
from inference.positions import Position


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One row of a conversation. `html` is the answer's Markdown; a user's message is shown as it was written."""

    message: Message
    html: SafeString | None
    event_id: int
    error: str
    is_last: bool


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


def shown_messages(messages: Sequence[Message]) -> list[ShownMessage]:
    """Return the rows of a branch, oldest first."""
    errors = _errors_of(messages)
    last_id = messages[-1].id if messages else None
    return [_shown(message, errors.get(message.id, ""), is_last=message.id == last_id) for message in messages]


def _shown(message: Message, error: str, *, is_last: bool) -> ShownMessage:
    is_answer = message.role == Message.Role.ASSISTANT
    html = render(message.content) if is_answer else None
    return ShownMessage(message, html, Position.of_text(message.content).event_id, error, is_last)


def _errors_of(messages: Iterable[Message]) -> dict[UUID, str]:
    unhappy = (Message.Status.FAILED, Message.Status.BLOCKED)
    ids = [message.id for message in messages if message.status in unhappy]
    if not ids:
        return {}
    return dict(Generation.objects.filter(message_id__in=ids).values_list("message_id", "error_message"))


def followed(generations: Sequence[Generation]) -> list[Followed]:
    """Return what the page's script has to follow besides the answers that it shows."""
    prefetch_related_objects(generations, "message")
    return [
        Followed(
            generation.message_id, generation.conversation_id, Position.of_text(generation.message.content).event_id
        )
        for generation in generations
    ]


def shown_conversations(
    page: Page[Conversation], *, current_id: UUID | None, answering: Iterable[Followed]
) -> list[ShownConversation]:
    """Return the sidebar's rows."""
    busy = {one.conversation_id for one in answering}
    return [
        ShownConversation(conversation, conversation.id == current_id, conversation.id in busy)
        for conversation in page.items
    ]
