"""Conversations to read: the shown branch of each as a Markdown page."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import batched
from uuid import UUID

from accounts.models import User
from conversations import queries
from conversations.models import Conversation, Message
from conversations.services.exports.conversation_parts import kept_conversations
from conversations.services.exports.file_names import file_name

_MESSAGES_AT_ONCE = 200
_UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True)
class Page:
    """One conversation. `name` is its path in the zip."""

    name: str
    title: str
    pieces: Iterator[str]


def pages(user: User) -> Iterator[Page]:
    """Yield a page for each conversation. A page is to be read before the next one is asked for."""
    for number, conversation in enumerate(kept_conversations(user), 1):
        title = " ".join(conversation.title.split()) or _UNTITLED
        yield Page(f"conversations/{file_name(number, title)}", title, _page(conversation, title))


def _page(conversation: Conversation, title: str) -> Iterator[str]:
    yield f"# {title}\n\nBegun {conversation.created_at:%Y-%m-%d %H:%M} UTC.\n"
    if conversation.instructions:
        yield f"\nInstructions:\n\n{conversation.instructions}\n"
    for ids in batched(queries.branch_ids(conversation), _MESSAGES_AT_ONCE, strict=False):
        yield from _said(ids)


def _said(ids: tuple[UUID, ...]) -> Iterator[str]:
    found = Message.objects.in_bulk(ids)
    for message in (found[each] for each in ids):
        yield f"\n## {_speaker(message)} · {message.created_at:%Y-%m-%d %H:%M} UTC\n\n{message.content}\n"


def _speaker(message: Message) -> str:
    if message.role == Message.Role.USER:
        return "You"
    return f"Answer ({message.model})" if message.model else "Answer"
