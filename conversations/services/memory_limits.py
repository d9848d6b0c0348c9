"""How many memories a user may have, and how long one may be: as the tier says, or else the site."""

from django.conf import settings

from accounts.models import User


def most_memories(user: User) -> int:
    """Return how many memories the user may have, and a prompt of the user's at most holds."""
    most: int = settings.MOST_MEMORIES if user.tier.most_memories is None else user.tier.most_memories
    return most


def most_memory_tokens(user: User) -> int:
    """Return how many tokens one of the user's memories may have."""
    most: int = settings.MOST_MEMORY_TOKENS if user.tier.most_memory_tokens is None else user.tier.most_memory_tokens
    return most
