"""The model files in the user's cache: one verified copy of each, shared by all checkouts."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from inference.local_server.local_models import LocalModel
from inference.local_server.progress import Progress, say

_CHUNK_BYTES = 4 * 1024 * 1024
_SPARE_BYTES = 200_000_000
_LOCK_CHECK_SECONDS = 5.0

_NOTICE = """\
The *.gguf files in this folder are weights of the Qwen2.5-Coder models (0.5B and 1.5B, Instruct, Q4_K_M).
Copyright 2024 Alibaba Cloud. Licensed under the Apache License, Version 2.0: you may not use them except in
compliance with that licence, whose text is at http://www.apache.org/licenses/LICENSE-2.0. Unless required by
applicable law or agreed to in writing, they are distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR
CONDITIONS OF ANY KIND, either express or implied.
"""

type Source = Callable[[LocalModel, Path], Path]
"""Brings a model's file into a working folder and returns where it is, or raises `SourceUnavailableError`."""


class WeightsError(Exception):
    """The weights cannot be had; the text says what to do."""


class SourceUnavailableError(WeightsError):
    """One source does not have the file; the next is asked."""


@dataclass(frozen=True, slots=True)
class WeightsCache:
    """A folder of verified model files. Downloads lie in `partial/<alias>` below it until they are complete."""

    folder: Path

    def ensure(self, model: LocalModel, sources: Sequence[Source]) -> Path:
        """Returns the verified file of `model`, fetched from the first source that has it.

        Raises `WeightsError` with a sentence for people where no source has it or the bytes are wrong.
        """
        target = self.folder / model.file_name
        if _is_known_good(target, model):
            return target
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "NOTICE").write_text(_NOTICE)
            with _one_at_a_time(self.folder / f"{model.alias}.lock", model):
                if target.exists() and (_is_known_good(target, model) or _verified_again(target, model)):
                    return target
                self._require_space(model)
                return self._fetch(model, sources, target)
        except OSError as error:
            raise WeightsError(_disk_sentence(error, self.folder)) from error

    def _fetch(self, model: LocalModel, sources: Sequence[Source], target: Path) -> Path:
        working_folder = self.folder / "partial" / model.alias
        working_folder.mkdir(parents=True, exist_ok=True)
        reasons = []
        for source in sources:
            try:
                fetched = source(model, working_folder)
            except SourceUnavailableError as reason:
                say(f"{model.alias}: {reason}")
                reasons.append(str(reason))
                continue
            _require_hash_of_download(fetched, working_folder, model)
            fetched.replace(target)
            _remember_good(target, model)
            shutil.rmtree(working_folder, ignore_errors=True)
            return target
        raise WeightsError(
            f"The weights of the {model.alias} model could not be fetched: {' '.join(reasons)} "
            f"Connect this machine to the network and start again (finished parts are kept), "
            f"or set MODEL_PATH to a local copy of {model.file_name}."
        )

    def _require_space(self, model: LocalModel) -> None:
        needed = 2 * model.size_bytes + _SPARE_BYTES  # the parts, and what they are joined into
        present = sum(part.stat().st_size for part in (self.folder / "partial" / model.alias).glob("**/*.*"))
        free = shutil.disk_usage(self.folder).free
        if free + present < needed:
            raise WeightsError(
                f"The {model.alias} model needs {needed // 1_000_000} MB free in {self.folder} while it is fetched, "
                f"and {free // 1_000_000} MB are. Free some space, or set XDG_CACHE_HOME to a larger disk."
            )


def default_cache() -> WeightsCache:
    """The cache of this user: `$XDG_CACHE_HOME`, else `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return WeightsCache(Path(base) / "chatsite" / "models")


def require_hash(path: Path, model: LocalModel) -> None:
    """Raises `WeightsError` unless the file's SHA-256 is the model's."""
    found = _sha256(path, Progress(f"{model.alias}: checking", path.stat().st_size))
    if found == model.sha256:
        return
    raise WeightsError(
        f"{path} is not the {model.alias} model: its SHA-256 is {found}, not {model.sha256}. "
        "Start again with a fresh copy; if it happens twice, do not trust that source."
    )


def _require_hash_of_download(fetched: Path, working_folder: Path, model: LocalModel) -> None:
    """Wrong bytes are thrown away with all their parts, else every later start would join the same ones."""
    try:
        require_hash(fetched, model)
    except WeightsError:
        shutil.rmtree(working_folder)
        raise


def _verified_again(target: Path, model: LocalModel) -> bool:
    """A file without a fitting marker (copied by hand, or touched) is hashed once more."""
    try:
        require_hash(target, model)
    except WeightsError as error:
        say(f"{error} It is fetched now.")
        target.unlink()
        return False
    _remember_good(target, model)
    return True


def _marker(target: Path) -> Path:
    return target.with_name(target.name + ".verified")


def _fingerprint(target: Path, model: LocalModel) -> dict[str, str | int]:
    status = target.stat()
    return {"sha256": model.sha256, "size_bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _is_known_good(target: Path, model: LocalModel) -> bool:
    try:
        marked = orjson.loads(_marker(target).read_bytes())
        return bool(marked == _fingerprint(target, model))
    except (OSError, orjson.JSONDecodeError):
        return False


def _remember_good(target: Path, model: LocalModel) -> None:
    _marker(target).write_bytes(orjson.dumps(_fingerprint(target, model)))


def _sha256(path: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            progress.advance_to(done_bytes)
    return digest.hexdigest()


@contextmanager
def _one_at_a_time(lock_path: Path, model: LocalModel) -> Iterator[None]:
    """Another checkout may be fetching the same file: wait for it, and say so."""
    lock = FileLock(lock_path)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=_LOCK_CHECK_SECONDS)
        except Timeout:
            say(f"{model.alias}: waiting for another process that is fetching it")
    try:
        yield
    finally:
        lock.release()


def _disk_sentence(error: OSError, folder: Path) -> str:
    reason = error.strerror or str(error)
    return f"Writing the weights to {folder} failed: {reason}. Free some space, or set XDG_CACHE_HOME, and try again."
