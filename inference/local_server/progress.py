"""Says on standard output how far a long download or check has come."""

import sys
import time
from dataclasses import dataclass, field

_SECONDS_BETWEEN_LINES = 2.0


@dataclass(slots=True)
class Progress:
    """Progress of one file. A terminal gets one line that is rewritten; a log gets a line every two seconds."""

    label: str
    total_bytes: int
    _last_said: float = field(default=0.0, init=False)

    def advance_to(self, done_bytes: int) -> None:
        """Reports `done_bytes` of `total_bytes`, unless the last report is too fresh."""
        now = time.monotonic()
        is_complete = done_bytes >= self.total_bytes
        if not is_complete and now - self._last_said < _SECONDS_BETWEEN_LINES:
            return
        self._last_said = now
        percent = 100 * done_bytes // max(self.total_bytes, 1)
        line = f"{self.label}: {percent}% ({_megabytes(done_bytes)} of {_megabytes(self.total_bytes)} MB)"
        if sys.stdout.isatty():
            sys.stdout.write("\r" + line + ("\n" if is_complete else ""))
            sys.stdout.flush()
        else:
            say(line)


def say(line: str) -> None:
    """One line on standard output, at once."""
    print(line, flush=True)


def _megabytes(count: int) -> int:
    return count // 1_000_000
