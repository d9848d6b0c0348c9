"""What a model thinks aloud inside its text is no part of what it says."""

import regex

_CLOSED = regex.compile(r"<(think|thinking|reasoning)>.*?</\1>", regex.DOTALL | regex.IGNORECASE)
_UP_TO_CLOSE = regex.compile(r"^.*</(?:think|thinking|reasoning)>", regex.DOTALL | regex.IGNORECASE)
_FROM_OPEN = regex.compile(r"<(?:think|thinking|reasoning)>.*", regex.DOTALL | regex.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Return the text without its thoughts: closed, never ended, or begun by the chat template."""
    text = _CLOSED.sub("", text)
    text = _UP_TO_CLOSE.sub("", text)
    return _FROM_OPEN.sub("", text).strip()
