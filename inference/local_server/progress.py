"""Says on standard output how far a long download or check has come."""

import sys
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """Progress of one file. A terminal gets one line that is rewritten; a log gets at most a line every two seconds.

    Nothing is said twice.
    """

    label: str
    total_bytes: int
    seconds_between_lines: float = 2.0
    _last_said: float = field(default=0.0, init=False)
    _last_percent: int = field(default=-1, init=False)

    def advance_to(self, done_bytes: int) -> None:
        """Reports `done_bytes` of `total_bytes`, unless the last report is too fresh or said the same."""
        now = time.monotonic()
        is_complete = done_bytes >= self.total_bytes
        percent = 100 * done_bytes // max(self.total_bytes, 1)
        if percent <= self._last_percent or (not is_complete and now - self._last_said < self.seconds_between_lines):
            return
        self._last_said, self._last_percent = now, percent
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
