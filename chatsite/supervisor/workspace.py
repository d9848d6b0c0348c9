"""The data directory: one supervisor at a time, enough room, a short-named place for sockets."""

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


@dataclass(frozen=True)
class Workspace:
    """A data directory that this process alone uses. `lock` is an open descriptor that keeps it so."""

    data: Path
    sockets: Path
    lock: int


@contextmanager
def open_workspace(data: Path) -> Iterator[Workspace]:
    """Make and lock the data directory; raise `StartError` if that cannot be done."""
    _make(data)
    lock = _lock(data)
    try:
        sockets = _socket_directory(data)
        try:
            yield Workspace(data, sockets, lock)
        finally:
            with contextlib.suppress(OSError):  # not empty: a server was killed
                sockets.rmdir()
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


def _socket_directory(data: Path) -> Path:
    """Make a private directory with a short name: a socket's path has at most 107 bytes."""
    name = hashlib.sha256(str(data).encode()).hexdigest()[:10]
    sockets = Path(tempfile.gettempdir()) / f"chat-{os.geteuid()}-{name}"
    sockets.mkdir(mode=0o700, exist_ok=True)
    if sockets.is_symlink() or sockets.stat().st_uid not in (os.geteuid(), 65534) or sockets.stat().st_mode & 0o077:
        raise StartError(f"{sockets} exists and is not this account's private directory; remove it.")
    return sockets
