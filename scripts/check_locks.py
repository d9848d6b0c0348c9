"""Checks that the locked and the installed packages are those that the requirements ask for."""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print each disagreement; exit with 1 if there is one."""
    faults = [fault for name in ("requirements", "requirements-dev") for fault in _faults(name)]
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


def _faults(name: str) -> Iterator[str]:
    locked = _locked(ROOT / f"{name}.txt")
    for wanted in _wanted(ROOT / f"{name}.in"):
        version = locked.get(canonicalize_name(wanted.name))
        if version is None or not wanted.specifier.contains(version, prereleases=True):
            yield f"{name}.in asks for {wanted}, {name}.txt has {version}; run `make lock`."
    for package, version in locked.items():
        installed = _installed(package)
        if installed is None or Version(installed) != Version(version):
            yield f"{name}.txt has {package} {version}, installed is {installed}; run `make test` or remove .venv."


def _wanted(path: Path) -> Iterator[Requirement]:
    for line in path.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text and not text.startswith("-"):
            yield Requirement(text)


def _locked(path: Path) -> dict[str, str]:
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", path.read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
