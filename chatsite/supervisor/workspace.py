"""The data directory: one supervisor at a time, enough room, a short-named place for sockets, one for numbers."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chatsite.supervisor.errors import StartError

LEAST_FREE_BYTES = 200_000_000
LEFTOVER_SECONDS = 20
MEMORY = Path("/dev/shm")  # noqa: S108 — a private directory in it


@dataclass(frozen=True)
class Workspace:
    """A data directory that this process alone uses. `lock` is an open descriptor that keeps it so."""

    data: Path
    sockets: Path
    metrics: Path
    lock: int


@contextmanager
def open_workspace(data: Path) -> Iterator[Workspace]:
    """Make and lock the data directory; raise `StartError` if that cannot be done."""
    _make(data)
    lock = _lock(data)
    try:
        sockets = _private_directory(Path(tempfile.gettempdir()), data)
        metrics = _metrics_directory(data)
        try:
            yield Workspace(data, sockets, metrics, lock)
        finally:
            with contextlib.suppress(OSError):  # not empty: a server was killed
                sockets.rmdir()
            shutil.rmtree(metrics, ignore_errors=True)
    finally:
        os.close(lock)


def _make(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data) as probe:
            probe.write(b"\0" * 65_536)
    except OSError as error:
        raise StartError(f"{data} cannot be written: {error.strerror}. Set DATA_DIR to another directory.") from error
    free = shutil.disk_usage(data).free
    if free < LEAST_FREE_BYTES:
        raise StartError(
            f"Only {free // 1_000_000} MB are free where {data} lies; {LEAST_FREE_BYTES // 1_000_000} MB are needed."
        )


def _lock(data: Path) -> int:
    lock = os.open(data / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(lock, 32, 0).decode().strip()
            # The lock of a supervisor that is gone is its guardian's, which is ending the rest.
            if error.errno not in (errno.EAGAIN, errno.EACCES) or _is_running(owner) or time.monotonic() > deadline:
                os.close(lock)
                raise StartError(
                    f"Another run (process {owner}) uses {data} already. Use it, stop it, or set DATA_DIR and PORT."
                ) from error
            time.sleep(0.1)
        else:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            return lock


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _private_directory(parent: Path, data: Path, purpose: str = "") -> Path:
    """Make a private directory with a short name: a socket's path has at most 107 bytes."""
    name = hashlib.sha256(str(data).encode()).hexdigest()[:10]
    made = parent / f"chat-{purpose}{os.geteuid()}-{name}"
    made.mkdir(mode=0o700, exist_ok=True)
    if made.is_symlink() or made.stat().st_uid not in (os.geteuid(), 65534) or made.stat().st_mode & 0o077:
        raise StartError(f"{made} exists and is not this account's private directory; remove it.")
    return made


def _metrics_directory(data: Path) -> Path:
    """Make an empty directory for the numbers of this run, in memory where that can be had.

    Processes map its files: a page of one that a full disk has no room for would end its writer with SIGBUS.
    """
    parent = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    metrics = _private_directory(parent, data, "metrics-")
    for left in metrics.iterdir():
        left.unlink()
    return metrics
