"""The supervisor's side of the guardian."""

import contextlib
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

from chatsite.supervisor import guardian


class Guard:
    """Keeps the guardian informed of the running process groups; a context manager.

    `lock` is the descriptor of the data directory's lock, which the guardian keeps until all is ended.
    """

    def __init__(self, lock: int) -> None:
        self._lock = lock

    def __enter__(self) -> Self:
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            pass_fds=[self._lock],
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._guardian.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.close()
        self._guardian.wait()

    def begun(self, group: int, stop_signal: signal.Signals) -> None:
        """Announce a process group that must not outlive the supervisor."""
        self._announce(f"{guardian.BEGUN} {group} {int(stop_signal)}")

    def ended(self, group: int) -> None:
        """Announce that the group is gone; its number may soon be another's."""
        self._announce(f"{guardian.ENDED} {group}")

    def _announce(self, line: str) -> None:
        assert self._guardian.stdin is not None
        # Without a guardian (killed by hand) the leashes still hold.
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.write(f"{line}\n")
