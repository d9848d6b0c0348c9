"""Server-sent events: bytes in, the data of whole events out."""

from inference.tgi.errors import Misbehaved

_MEBIBYTE = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Reads the `data` of events from a byte stream that may be cut into pieces anywhere.

    Lines end at LF, CRLF or CR and nowhere else. Other fields and comments are skipped; more than one `data` line of an
    event is joined by LF. Source: WHATWG HTML, section 9.2.6, except that `end` gives an event that no blank line
    closed, because servers and proxies leave out the last one.
    """

    def __init__(self, *, max_line_bytes: int = 4 * _MEBIBYTE, max_event_bytes: int = 4 * _MEBIBYTE) -> None:
        self._max_line_bytes = max_line_bytes
        self._max_event_bytes = max_event_bytes
        self._most_in_one_bytes = min(max_line_bytes, max_event_bytes)
        self._line_parts: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._after_cr = False
        self._is_first_line = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes. Raises `Misbehaved` for a line or event that is too long."""
        if self._is_one_event(chunk):
            return [chunk[6:-2]]
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            # A CR ends its line at once: waiting for a possible LF would hold back the last event of a CR-only stream.
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._line_parts:
            self._keep_part(lines[0])
            lines[0] = self._take_line()
        events = self._read_lines(lines)
        if rest:
            self._keep_part(rest)
        return events

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether nothing is pending and the chunk is one event of one line, as it almost always is."""
        return (
            chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n")
            and len(chunk) <= self._most_in_one_bytes
            and b"\r" not in chunk
            and not (self._line_parts or self._data or self._after_cr or self._is_first_line)
        )

    def end(self) -> list[bytes]:
        """The data of an event that the end of the stream left open, if any."""
        return self._read_lines([self._take_line(), b""])

    def _keep_part(self, part: bytes) -> None:
        self._line_bytes += len(part)
        if self._line_bytes > self._max_line_bytes:
            raise Misbehaved(f"a line of the stream is longer than {self._max_line_bytes} bytes")
        self._line_parts.append(part)

    def _take_line(self) -> bytes:
        line = b"".join(self._line_parts)
        self._line_parts.clear()
        self._line_bytes = 0
        return line

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        if lines and self._is_first_line:
            self._is_first_line = False
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._keep_data(line[6:] if line.startswith(b" ", 5) else line[5:])
            elif line == b"data":
                self._keep_data(b"")
            elif not line and self._data:
                events.append(self._take_data())
        return events

    def _keep_data(self, value: bytes) -> None:
        self._data_bytes += len(value) + 1
        if self._data_bytes > self._max_event_bytes or len(value) > self._max_line_bytes:
            raise Misbehaved(f"an event of the stream is longer than {self._max_event_bytes} bytes")
        self._data.append(value)

    def _take_data(self) -> bytes:
        event = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        self._data_bytes = 0
        return event
