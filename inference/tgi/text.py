"""What must happen to a model's text before anyone reads it: repair, no repeated whitespace, no stop strings."""

import re
from collections.abc import Sequence

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATE = re.compile("[\ud800-\udfff]")
_HIGH_SURROGATES = ("\ud800", "\udbff")


class TextRepair:
    """Replaces what no database and no JSON reader takes: NUL and lone surrogates. A pair split in two is joined."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        if not text:
            return text
        if self._high:
            text, self._high = self._high + text, ""
        if "\0" in text:
            text = text.replace("\0", _REPLACEMENT)
        if text.isascii() or not _SURROGATE.search(text):
            return text
        if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            text, self._high = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def end(self) -> str:
        lone, self._high = self._high, ""
        return _REPLACEMENT if lone else ""


class RepeatedWhitespace:
    """Drops whitespace that a continued answer already ends with.

    TGI trims the rendered prompt after the message that is to be continued, so the model never sees the whitespace at
    the partial answer's end and usually writes it once more. Dropped is the longest beginning of the continuation that
    the partial's trailing whitespace ends with; whatever the model writes beyond that is kept.
    """

    def __init__(self, partial: str) -> None:
        self._trailing = partial[len(partial.rstrip()) :]
        self._held = ""

    def feed(self, text: str) -> str:
        if not self._trailing:
            return text
        self._held += text
        if len(self._held) < len(self._trailing) and not self._held.strip():
            return ""
        return self.end()

    def end(self) -> str:
        longest = min(len(self._held), len(self._trailing))
        repeated = next((n for n in range(longest, 0, -1) if self._trailing.endswith(self._held[:n])), 0)
        text = self._held[repeated:]
        self._held = self._trailing = ""
        return text


class StopStrings:
    """Cuts a text before the first stop string, holding back only what could still become one."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(string for string in stop if string)
        self._held = ""
        self.was_met = False

    def feed(self, text: str) -> str:
        if not self._stop:
            return text
        if self.was_met:
            return ""
        text, self._held = self._held + text, ""
        starts = [start for string in self._stop if (start := text.find(string)) >= 0]
        if starts:
            self.was_met = True
            return text[: min(starts)]
        held = max(_overlap(text, string) for string in self._stop)
        text, self._held = text[: len(text) - held], text[len(text) - held :]
        return text

    def end(self) -> str:
        text, self._held = self._held, ""
        return text


def _overlap(text: str, string: str) -> int:
    """How many of the last characters of `text` are the beginning, but not the whole, of `string`."""
    longest = min(len(text), len(string) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(string[:n])), 0)
