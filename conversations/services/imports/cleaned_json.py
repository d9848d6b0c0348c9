r"""JSON bytes as the parser can take them: without a byte order mark, and with halves of characters replaced.

The parser gives up at a lone `\udf78`, and reads a lone `\ud83c` as a question mark.
"""

import re
from collections.abc import Callable
from typing import IO

from conversations.services.imports.faults import UnreadableFile

_BOM = b"\xef\xbb\xbf"
CHUNK_BYTES = 256 * 1024
_BACKSLASH = ord("\\")
_HALF_ESCAPE = 6
_LONGEST_ESCAPE = 12
_FIRST_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_ESCAPE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_MOST_TEXT_BYTES = 4_000_000


class CleanedJSON:
    """A file to parse. `tick` is called as it is read, for whoever must know that work goes on."""

    def __init__(self, file: IO[bytes], tick: Callable[[], None]) -> None:
        self._file = file
        self._tick = tick
        self._carried = b""
        self._is_at_start = True
        self._without_end = 0

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes, however many; none at the end."""
        if count == 0:
            return b""
        while True:
            self._tick()
            chunk = self._file.read(CHUNK_BYTES)
            if self._is_at_start:
                chunk, self._is_at_start = chunk.removeprefix(_BOM), False
            if not chunk:
                rest, self._carried = self._carried, b""
                return _ESCAPE.sub(_mended, rest)
            self._check_length(chunk)
            if ready := self._ready(self._carried + chunk):
                return ready

    def _ready(self, buffer: bytes) -> bytes:
        """Return what can be said of the buffer; an escape that may go on is carried to the next chunk."""
        cut = _first_open_escape(buffer)
        ready, self._carried = buffer[:cut], buffer[cut:]
        return _ESCAPE.sub(_mended, ready) if b"\\u" in ready else ready

    def _check_length(self, chunk: bytes) -> None:
        """Refuse a text that the parser would have to hold whole, and that no conversation has."""
        end = chunk.rfind(b'"')
        # A quote behind a backslash may be a part of the text; any other ends it, or begins the next.
        while end > 0 and chunk[end - 1] == _BACKSLASH:
            end = chunk.rfind(b'"', 0, end)
        self._without_end = self._without_end + len(chunk) if end <= 0 else len(chunk) - end
        if self._without_end > _MOST_TEXT_BYTES:
            raise UnreadableFile("There is a text of more than 4 MB in this file; no conversation has one.")


def _first_open_escape(buffer: bytes) -> int:
    """Return where the first escape begins that may reach beyond the end, or else the end."""
    at = buffer.find(b"\\", max(0, len(buffer) - _LONGEST_ESCAPE + 1))
    while at >= 0:
        if _begins_escape(buffer, at):
            above = at - _HALF_ESCAPE
            is_second_half = _FIRST_HALF.fullmatch(buffer, max(0, above), at) and _begins_escape(buffer, above)
            return above if is_second_half else at
        at = buffer.find(b"\\", at + 1)
    return len(buffer)


def _begins_escape(buffer: bytes, at: int) -> bool:
    """Say whether the backslash there is not itself escaped."""
    before = at
    while before > 0 and buffer[before - 1] == _BACKSLASH:
        before -= 1
    return (at - before) % 2 == 0


def _mended(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[2] else escape[0]
