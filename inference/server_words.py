"""What a model server says of itself and of its answers, as far as it can be believed: that is stored, and counted."""

MOST_NAME_CHARACTERS = 200
MOST_COUNT = 1_000_000_000


def believed_name(said: object) -> str | None:
    """Return a name that can be stored and shown; `None` for anything else."""
    if not isinstance(said, str):
        return None
    return said if 0 < len(said) <= MOST_NAME_CHARACTERS and said.isprintable() else None


def believed_count(said: object) -> int | None:
    """Return a number of tokens or requests; `None` for anything else."""
    if not isinstance(said, int) or isinstance(said, bool):
        return None
    return said if 0 <= said <= MOST_COUNT else None


def believed_limit(said: object) -> int | None:
    """Return a number that bounds something, and so is above zero; `None` for anything else."""
    return believed_count(said) or None
