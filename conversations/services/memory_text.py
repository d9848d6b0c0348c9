"""What a memory may say: one line, not too long."""

import unicodedata

from django.conf import settings

from conversations.exceptions import InvalidRequest
from foundation.text import is_storable
from inference.stored_catalog import current_catalog
from inference.token_counting import count_now, upper_bound

_MOST_CHARACTERS_PER_TOKEN = 20
"""Nobody is asked to count what has more."""


def checked_line(content: str) -> str:
    """Return the content on one line; raise `InvalidRequest` where it cannot be kept."""
    if not is_storable(content):
        raise InvalidRequest("content contains a NUL or a lone surrogate; remove it.", param="content")
    line = " ".join(content.split())
    if not line:
        raise InvalidRequest("The text is empty; say what is to be remembered.", param="content")
    if (size := size_over_limit(line)) is not None:
        most = settings.MOST_MEMORY_TOKENS
        raise InvalidRequest(f"The text has {size}; {most:,} tokens are allowed.", param="content")
    return line


def size_over_limit(line: str) -> str | None:
    """Return how long a line is, in words, where that is too long. It may ask a model server to count.

    Where nobody can count, a line counts as the most tokens that it can have.
    """
    most = settings.MOST_MEMORY_TOKENS
    if (bound := upper_bound(line)) <= most:
        return None
    if len(line) > most * _MOST_CHARACTERS_PER_TOKEN:
        return f"{len(line):,} characters"
    tokens = count_now(current_catalog().default_alias, line)
    if tokens is None:
        return f"up to {bound:,} tokens"
    return f"{tokens:,} tokens" if tokens > most else None


def folded(text: str) -> str:
    """Return the text without what does not matter when two are compared: case, space, the stop at its end."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!。")
