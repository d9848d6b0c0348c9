"""What staff and the system do to others' things, on its way to the log, which an app above this one keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

LEAST_REASON_CHARACTERS = 10
MOST_REASON_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Act:
    """Who did what to what, and why. Without an actor it was the system.

    `changes` has each changed field's values, `{"tier": {"before": "free", "after": "plus"}}`: JSON, and no secrets.
    """

    action: str
    subject_type: str
    subject_id: str
    reason: str
    actor_id: UUID | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


_keepers: list[Callable[[Act], object]] = []


def keep_with(keeper: Callable[[Act], object]) -> None:
    """Have every act kept by `keeper`, in the transaction of the act itself."""
    _keepers[:] = [keeper]


def keep(act: Act) -> object:
    """Write an act down, and return what keeps it. Fails where nobody keeps the log: nothing may be done without."""
    (keeper,) = _keepers
    return keeper(act)
