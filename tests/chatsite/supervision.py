"""What the supervisor's tests share: a terminal that remembers, processes as the kernel lists them."""

import io
import os
import time
from pathlib import Path


class Transcript(io.StringIO):
    """Stands where a terminal's output goes."""

    def isatty(self) -> bool:
        return False


def wait_until(holds, *, seconds=30, what="it"):
    """Poll until `holds()` is true; fail with a sentence at the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
    return found


def is_running(pid: int) -> bool:
    """Tell whether the process exists and is not merely waiting to be collected by its parent."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def running_with(text: str) -> dict[int, str]:
    """Return the processes in whose command line or environment the text occurs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in command + environment and is_running(int(entry.name)):
                found[int(entry.name)] = command.replace(b"\0", b" ").decode()
    return found
