"""What one answer's model saw: kept with the generation, shown to its owner, and continued by the next prompt."""

from dataclasses import asdict, dataclass
from typing import Any, Self
from uuid import UUID

import structlog

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """A memory that was in the prompt; its text is not kept here, because it may be deleted."""

    memory_id: UUID
    tokens: int


@dataclass(frozen=True, slots=True)
class UsedSummary:
    """The summary that was in the prompt."""

    summary_id: UUID
    epoch: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The parts of a prompt, in tokens of `tokenizer`. Counts are upper bounds where `is_exact` is false.

    The path's beginning up to and with the message `head_up_to` was kept, and all from the message `tail_from` on; what
    lies between, up to and with `dropped_up_to`, was left out. All three are `None` where nothing was left out;
    `head_up_to` alone is `None` where the beginning was left out too, `dropped_up_to` where nobody knows it. Passages
    are counted with the messages that they stand in; `passages_kept` and `passages_dropped` are those of the last.
    """

    tokenizer: str
    is_exact: bool
    window_tokens: int | None
    budget_tokens: int | None
    total_tokens: int
    site_instructions_tokens: int = 0
    user_instructions_tokens: int = 0
    instructions_tokens: int = 0
    memories: tuple[UsedMemory, ...] = ()
    summary: UsedSummary | None = None
    messages_kept: int = 0
    messages_kept_tokens: int = 0
    messages_dropped: int = 0
    head_up_to: UUID | None = None
    dropped_up_to: UUID | None = None
    tail_from: UUID | None = None
    passages_kept: int = 0
    passages_dropped: int = 0
    trimmed_passages: tuple[tuple[UUID, int], ...] = ()
    """Which messages of the prompt have only so many of their passages, the last one's or an earlier one's."""

    @property
    def is_trimmed(self) -> bool:
        """Whether messages or passages were left out."""
        return bool(self.tail_from or self.passages_dropped)

    def as_json(self) -> dict[str, Any]:
        """Return what is stored."""
        return asdict(self)

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        """Return the record that was stored. Raise `KeyError`, `TypeError` or `ValueError` for anything else."""
        summary = stored["summary"]
        ids = {
            name: UUID(stored[name]) if stored[name] else None for name in ("head_up_to", "dropped_up_to", "tail_from")
        }
        return cls(
            **stored
            | ids
            | {
                "memories": tuple(UsedMemory(UUID(m["memory_id"]), m["tokens"]) for m in stored["memories"]),
                "trimmed_passages": tuple((UUID(message_id), kept) for message_id, kept in stored["trimmed_passages"]),
                "summary": UsedSummary(**summary | {"summary_id": UUID(summary["summary_id"])}) if summary else None,
            }
        )


def record_in(stored: dict[str, Any] | None) -> Record | None:
    """Return the record that was stored; `None` for none, and for what a newer version may have written instead."""
    if stored is None:
        return None
    try:
        return Record.read(stored)
    except (KeyError, TypeError, ValueError) as error:
        log.warning("record_unreadable", error=type(error).__name__)
        return None
