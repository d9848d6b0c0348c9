"""The private files of exports and imports: random names below the data directory, readable to the site alone."""

import os
import secrets
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

EXPORTS, IMPORTS = "exports", "imports"
PARTIAL_SUFFIX = ".part"
_STRAY_SECONDS = 2 * 3600
"""A file that no row knows is left alone for this long: it may be one that is just being written."""


def path_of(folder: str, name: str) -> Path:
    """Return where a file lies that `new_name` named."""
    return _folder(folder) / name


def new_name(suffix: str) -> str:
    """Return a name that nobody can guess. Names of the users' own are never used on the disk."""
    return secrets.token_hex(16) + suffix


@contextmanager
def new_file(folder: str, name: str) -> Iterator[IO[bytes]]:
    """Write a file that is there under its name once the block has ended without an error, or else not at all."""
    path = path_of(folder, name)
    partial = path.with_name(new_name(PARTIAL_SUFFIX))
    try:
        with open(partial, "wb", opener=_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def delete(folder: str, name: str) -> bool:
    """Delete a file; say whether it was there."""
    if not name:
        return False
    try:
        path_of(folder, name).unlink()
    except FileNotFoundError:
        return False
    return True


def delete_strays(folder: str, known: Container[str]) -> int:
    """Delete old files that no row knows: what a killed process left, or an account that is gone; return how many."""
    before = time.time() - _STRAY_SECONDS
    strays = [path for path in _folder(folder).iterdir() if path.name not in known and _changed_at(path) < before]
    return sum(delete(folder, path.name) for path in strays)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _folder(name: str) -> Path:
    folder: Path = settings.DATA_DIR / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o600)
