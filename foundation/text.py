"""Which text may be stored, and how text is cut."""

import regex

UNSTORABLE = regex.compile(r"[\x00\ud800-\udfff]")
"""NUL, which PostgreSQL refuses, and lone surrogates, which are not text in any encoding."""
REPLACEMENT = "\ufffd"
_GRAPHEME = regex.compile(r"\X")


def is_storable(text: str) -> bool:
    """Say whether the text can be kept unchanged."""
    return UNSTORABLE.search(text) is None


def made_storable(text: str) -> str:
    """Return the text with each NUL and lone surrogate replaced by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    replaced: str = UNSTORABLE.sub(REPLACEMENT, text)
    return replaced


def truncated(text: str, max_characters: int) -> str:
    """Return at most `max_characters` code points, cut between grapheme clusters (UAX 29), `…` where cut."""
    if len(text) <= max_characters:
        return text
    end = 0
    for cluster in _GRAPHEME.finditer(text):
        if cluster.end() > max_characters - 1:
            break
        end = cluster.end()
    return text[:end].rstrip() + "…"
