"""A path's readable messages, and where its exchanges begin."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from conversations.context.material import Material, Said


@dataclass(frozen=True, slots=True)
class ReadablePath:
    """What of a path can be said again: each message with a text, once, the oldest first.

    `starts` are the places where the rest may begin when something in front of it is left out: at a question, and
    behind the unread messages, which are missing in front of the place `gap` (`None`: none are missing). What begins at
    the last of them is never left out. `head_end` is where the path's first exchange ends, 0 where it was not read.
    """

    messages: tuple[Said, ...]
    starts: tuple[int, ...]
    head_end: int
    gap: int | None

    def place_of(self, message_id: UUID | None) -> int | None:
        """Return where a message stands, `None` where it is not among these."""
        if message_id is None:
            return None
        return next((place for place, said in enumerate(self.messages) if said.message_id == message_id), None)


def readable(material: Material) -> ReadablePath:
    """Return what can be said again. A path that begins with an answer, as a damaged one may, has no head."""
    messages, gap = _once_each(material)
    if not messages:
        return ReadablePath((), (0,), 0, gap)
    first = gap or 0
    starts = tuple(i for i in range(first, len(messages)) if messages[i].role == "user") or (first,)
    head_end = _first_exchange_end(messages[: len(messages) if gap is None else gap])
    return ReadablePath(messages, starts, min(head_end, starts[-1]), gap)


def _once_each(material: Material) -> tuple[tuple[Said, ...], int | None]:
    messages: dict[int, Said] = {}
    head_count = 0
    for place, said in enumerate(material.path):
        if place == material.head_count:
            head_count = len(messages)
        if said.content:
            messages.setdefault(said.message_id.int, said)
    return tuple(messages.values()), head_count if material.unread_messages != 0 else None


def _first_exchange_end(messages: Sequence[Said]) -> int:
    """Return where the answer to the first question ends, or the first of several that failed before one came."""
    if not messages or messages[0].role != "user":
        return 0
    is_answered = False
    for place, said in enumerate(messages):
        if said.role == "user" and is_answered:
            return place
        is_answered = is_answered or said.role != "user"
    return len(messages)
