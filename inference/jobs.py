"""What a worker takes from the queue."""

from dataclasses import dataclass
from uuid import UUID

PRIORITY_CLASSES = ("enterprise", "plus", "free", "background")
"""Most urgent first."""


@dataclass(frozen=True, slots=True)
class Job:
    """A generation to be written. Everything else about it is in the database."""

    generation_id: UUID
    priority_class: str
