"""What there is to choose from when a prompt is made, as it was read from the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from conversations.context.record import Record
from inference.messages import Role


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the path. `token_counts` maps a tokenizer's name to how many tokens the content has.

    `passages` were retrieved for this message and stay with it, the most relevant first.
    """

    message_id: UUID
    role: Role
    content: str
    token_counts: Mapping[str, int] = field(default_factory=dict)
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """A memory of the user's."""

    memory_id: UUID
    content: str


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary that stands for the path up to and with the message `covers_up_to`."""

    summary_id: UUID
    epoch: int
    text: str
    covers_up_to: UUID


@dataclass(frozen=True, slots=True)
class Material:
    """All that a prompt is made of. `path` leads from the first message to the one that is answered (or continued).

    Of a long conversation only what can be in the prompt was read: the first `head_count` messages of `path` are the
    path's beginning, and between them and the rest there is a gap where `unread_messages` is not zero (`None`: nobody
    knows how many). `previous` is the record of the answer before the last message: what is kept and dropped goes on
    from there. `summaries` are those that hold for this path, the oldest epoch first.
    """

    path: tuple[Said, ...]
    site_instructions: str = ""
    user_instructions: str = ""
    instructions: str = ""
    memories: tuple[Remembered, ...] = ()
    summaries: tuple[Summarised, ...] = ()
    head_count: int = 0
    unread_messages: int | None = 0
    previous: Record | None = None
