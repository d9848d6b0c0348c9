"""Names of files that every system can keep, made of titles in any script."""

import unicodedata

import regex

from foundation.text import made_storable, truncated

_MOST_CHARACTERS = 60
_MOST_BYTES = 180
_UNSAFE = regex.compile(r'[\p{C}\p{Z}<>:"/\\|?*\[\]()`]+')
"""Controls, marks that turn the direction of text, line breaks, and what some system gives a meaning of its own."""


def file_name(number: int, title: str) -> str:
    """Return a name that no other number has, whatever letters a file system takes for the same."""
    plain = _UNSAFE.sub(" ", unicodedata.normalize("NFC", made_storable(title)))
    short = truncated(plain.strip(" ."), _MOST_CHARACTERS).strip(" .…")
    while len(short.encode()) > _MOST_BYTES:
        short = short[:-1].rstrip()
    return f"{number:05d} {short}.md" if short else f"{number:05d}.md"
