"""What the figures were measured on."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

_PACKAGES = ("Django", "uvicorn", "redis", "psycopg", "aiohttp", "uvloop")


def describe() -> dict[str, str]:
    """Return the machine and the versions, in words."""
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{os.cpu_count()} cores of {_processor()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "kernel": platform.release(),
        "load average at the start": f"{os.getloadavg()[0]:.1f}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]
        ),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
