"""What the supervisor knows of a program before it runs."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from chatsite.supervisor import leash
from chatsite.supervisor.privileges import Privileges


async def always_ready() -> bool:
    """Say that a program needs nothing more than to run."""
    return True


@dataclass(frozen=True, kw_only=True)
class Component:
    """One program of the stack; `prepare` runs before every start, the kill comes `grace_seconds` after the stop.

    `forget` is given the number of each process of it that has ended.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_ready: Callable[[], Awaitable[bool]] = always_ready
    prepare: Callable[[], None] | None = None
    forget: Callable[[int], None] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    grace_seconds: float = 8.0
    niceness: int = 0
    privileges: Privileges = field(default_factory=Privileges)


def leashed(
    command: tuple[str, ...], *, stop_signal: signal.Signals, niceness: int = 0, privileges: Privileges | None = None
) -> list[str]:
    """Return the command that runs `command` so that it ends with this process."""
    privileges = privileges or Privileges()
    wish = [str(int(stop_signal)), str(os.getpid()), privileges.owner, str(niceness)]
    return [*privileges.prefix, sys.executable, "-I", "-S", leash.__file__, *wish, *command]
