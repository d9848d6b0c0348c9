"""What a worker takes from the queue."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

BACKGROUND = "background"
"""The class of what nobody waits for."""
PRIORITY_CLASSES = ("enterprise", "plus", "free", BACKGROUND)
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
    `is_before_people` says that it is of the background class, but had waited so long that it goes before people.
    """

    generation_id: UUID
    priority_class: str
    model: str
    user_id: UUID
    deadline: datetime
    estimated_tokens: int = 0
    permit_url: str | None = field(default=None, compare=False)
    waited_seconds: float = field(default=0.0, compare=False)
    is_before_people: bool = field(default=False, compare=False)

    @property
    def gives_way(self) -> bool:
        """Whether a person who waits may have its place. What goes before people keeps it, or would never end."""
        return self.priority_class == BACKGROUND and not self.is_before_people

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
