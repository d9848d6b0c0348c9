"""What a memory may say: one line, not too long."""

import unicodedata

from conversations.exceptions import InvalidRequest
from foundation.text import is_storable
from inference.stored_catalog import current_catalog
from inference.token_counting import count_now, upper_bound

_MOST_CHARACTERS_PER_TOKEN = 20
"""Nobody is asked to count what has more."""


def checked_line(content: str, *, most_tokens: int) -> str:
    """Return the content on one line; raise `InvalidRequest` where it cannot be kept."""
    if not is_storable(content):
        raise InvalidRequest("content contains a NUL or a lone surrogate; remove it.", param="content")
    line = " ".join(content.split())
    if not line:
        raise InvalidRequest("The text is empty; say what is to be remembered.", param="content")
    if (size := size_over_limit(line, most_tokens)) is not None:
        raise InvalidRequest(f"The text has {size}; {most_tokens:,} tokens are allowed.", param="content")
    return line


def size_over_limit(line: str, most: int) -> str | None:
    """Return how long a line is, in words, where it has more tokens than `most`. It may ask a model server to count.

    Where nobody can count, a line counts as the most tokens that it can have.
    """
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
