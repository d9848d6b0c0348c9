"""What a worker takes from the queue."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

PRIORITY_CLASSES = ("enterprise", "plus", "free", "background")
"""Most urgent first."""

_OUTPUT_WEIGHT = 2
"""A token that is written costs about as much as so many that are read (Sheng et al., OSDI 2024)."""
_CHARACTERS_PER_TOKEN = 4
_USUAL_ANSWER_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Job:
    """A generation to be written. Everything else about it is in the database.

    `estimated_tokens` is what its user is charged when it is taken, until what was spent is known. After `deadline` it
    is handed out without a permit, only to be ended. `permit_url` is the replica at which a place is reserved for it.
    """

    generation_id: UUID
    priority_class: str
    model: str
    user_id: UUID
    deadline: datetime
    estimated_tokens: int = 0
    permit_url: str | None = field(default=None, compare=False)
    waited_seconds: float = field(default=0.0, compare=False)

    @property
    def rank(self) -> int:
        """0 for the most urgent class."""
        return PRIORITY_CLASSES.index(self.priority_class)


def weighted_tokens(tokens_in: int, tokens_out: int) -> int:
    """Return what tokens count for in the sharing between users."""
    return tokens_in + _OUTPUT_WEIGHT * tokens_out


def estimated_tokens(characters: int, most_answer_tokens: int) -> int:
    """Return what a request will probably count for: few answers are as long as they may be."""
    return weighted_tokens(characters // _CHARACTERS_PER_TOKEN, min(most_answer_tokens, _USUAL_ANSWER_TOKENS))
