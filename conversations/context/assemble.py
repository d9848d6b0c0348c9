"""What the model sees: instructions first, then the branch that leads to the question, unchanged."""

from collections.abc import Iterable

from django.conf import settings

from inference.messages import ChatMessage


def assemble(path: Iterable[ChatMessage], instructions: str) -> tuple[ChatMessage, ...]:
    """Return the prompt for the answer to a question, which is the last message of the path.

    Two messages of one role in a row, as a failed answer leaves behind, become one: chat templates insist on turns.
    """
    system = "\n\n".join(part for part in (settings.SYSTEM_INSTRUCTIONS, instructions) if part)
    return tuple(_in_turns([ChatMessage("system", system), *path] if system else path))


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
