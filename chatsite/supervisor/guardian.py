"""Ends what a killed supervisor leaves behind: reads process groups from standard input, and at its end stops them.

Runs as a bare script beside the supervisor. The kernel ends the supervisor's own children with it (`leash.py`), but not
their children, and cannot insist. The guardian also inherits the lock of the data directory, so that nobody starts
anew before the last process is gone.
"""

import contextlib
import os
import signal
import sys
import time
from typing import TextIO

PATIENCE_SECONDS = 10
BEGUN, ENDED = "begun", "ended"


def main(announcements: TextIO) -> None:
    """Follow `begun GROUP SIGNAL` and `ended GROUP` until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in announcements:
        match line.split():
            case [word, group, stop_signal] if word == BEGUN:
                groups[int(group)] = int(stop_signal)
            case [word, group] if word == ENDED:
                groups.pop(int(group), None)
    _end(groups)


def _end(groups: dict[int, int]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    for group, stop_signal in groups.items():
        _signal(group, stop_signal)
    remaining = [group for group in groups if _signal(group, 0)]
    while remaining and time.monotonic() < deadline:
        time.sleep(0.05)
        remaining = [group for group in remaining if _signal(group, 0)]
    for group in remaining:
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    main(sys.stdin)
