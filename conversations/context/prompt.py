"""The words of a prompt: one system message, then the path in turns. The same parts always make the same bytes."""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from operator import attrgetter

from conversations.context.choice import Choice, choice_of, first_choice
from conversations.context.exchanges import ReadablePath, readable
from conversations.context.material import Material, Remembered
from conversations.context.record import Record
from inference.messages import ChatMessage, Role

MEMORIES_HEADING = "What the user has told you about themselves. Use it where the question needs it:"
"""Told only that they are to be remembered, a small model recited memories or refused the question over them."""
SUMMARY_HEADING = "What was said earlier in this conversation and is left out below, in short:"
BETWEEN_BLOCKS = "\n\n"
_JOINTS: Mapping[Role, str] = {"user": BETWEEN_BLOCKS, "assistant": ""}


def assemble(material: Material, record: Record | None = None) -> tuple[ChatMessage, ...]:
    """Return the prompt that a record describes; without one, what it will be if it goes on as the one before.

    The latter serves to find a replica that knows the prompt's beginning, before it is known what fits there.
    """
    path = readable(material)
    if record:
        return written(material, path, choice_of(material, path, record))
    return written(material, path, first_choice(material, path, _memories_as_before(material), anew=False))


def written(material: Material, path: ReadablePath, choice: Choice, so_far: str = "") -> tuple[ChatMessage, ...]:
    """Return the messages of a prompt. `so_far` is the beginning of the answer that is wanted."""
    messages = [
        ChatMessage(said.role, _with_passages(said.content, choice.passages(said)) if said.passages else said.content)
        for said in choice.messages(path)
    ]
    if so_far:
        messages.append(ChatMessage("assistant", so_far))
    system = system_text(material, choice)
    turns = _in_turns(messages)
    return (ChatMessage("system", system), *turns) if system else tuple(turns)


def system_text(material: Material, choice: Choice) -> str:
    """Return all that stands before the conversation. Nothing in it changes by itself from turn to turn."""
    return BETWEEN_BLOCKS.join(block for block in _blocks(material, choice) if block)


def memory_line(memory: Remembered) -> str:
    """Return a memory as an item of a list."""
    return "- " + memory.content.replace("\n", "\n  ")


def _blocks(material: Material, choice: Choice) -> Iterator[str]:
    yield material.site_instructions
    yield material.user_instructions
    yield material.instructions
    if choice.memories:
        yield "\n".join([MEMORIES_HEADING, *map(memory_line, choice.memories)])
    if choice.summary:
        yield f"{SUMMARY_HEADING}\n{choice.summary.text}"


def _with_passages(content: str, passages: tuple[str, ...]) -> str:
    return BETWEEN_BLOCKS.join((*passages, content))


def _in_turns(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Make one of several questions around answers that failed, and of an answer and what continues it.

    Chat templates insist on turns.
    """
    if all(before.role != after.role for before, after in pairwise(messages)):
        return messages
    turns: list[ChatMessage] = []
    for role, group in groupby(messages, key=attrgetter("role")):
        if role in _JOINTS:
            turns.append(ChatMessage(role, _JOINTS[role].join(message.content for message in group)))
        else:
            turns += group
    return turns


def _memories_as_before(material: Material) -> tuple[Remembered, ...]:
    """Return the memories without those that had no room the last time: the oldest."""
    if material.previous is None or not material.previous.memories:
        return material.memories
    oldest = min(used.memory_id for used in material.previous.memories)
    return tuple(memory for memory in material.memories if memory.memory_id >= oldest)
