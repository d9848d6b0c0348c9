"""Turns into a program that the kernel ends with its parent: `leash.py SIGNAL PARENT_PID USER:GROUP|- PROGRAM …`.

Runs as a bare script (`python -I -S`), so that it starts in milliseconds. It is the last step before the program
itself: the kernel forgets the wish when the user changes, and never passes it on to a fork.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(signal_number: int, parent_pid: int, owner: str, program: list[str]) -> None:
    """Become `program`, as `owner` where one is named, to be sent the signal when the parent's thread ends."""
    if owner != "-":
        user, group = map(int, owner.split(":"))
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent_pid:  # it ended before the wish was made
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
