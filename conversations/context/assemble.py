"""What the model sees: instructions first, then the branch that leads to the question, unchanged."""

from collections.abc import Iterable
from uuid import UUID

from django.conf import settings

from conversations import queries
from conversations.models import Message
from inference.messages import ChatMessage


def assemble(conversation_id: UUID, question_id: UUID, instructions: str) -> tuple[ChatMessage, ...]:
    """Return the prompt for the answer to a question: the path to it through the tree, never a sibling.

    Two messages of one role in a row, as a failed answer leaves behind, become one: chat templates insist on turns.
    """
    branch = queries.branch_to(conversation_id, question_id)
    system = "\n\n".join(part for part in (settings.SYSTEM_INSTRUCTIONS, instructions) if part)
    said = [ChatMessage("assistant" if m.role == Message.Role.ASSISTANT else "user", m.content) for m in branch]
    return tuple(_in_turns([ChatMessage("system", system), *said] if system else said))


def _in_turns(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    turns: list[ChatMessage] = []
    for message in messages:
        if not message.content:
            continue
        if turns and turns[-1].role == message.role:
            turns[-1] = ChatMessage(message.role, f"{turns[-1].content}\n\n{message.content}")
        else:
            turns.append(message)
    return turns
