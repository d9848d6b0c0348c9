"""Turns into a program that the kernel ends with its parent: `leash.py SIGNAL PARENT OWNER NICENESS PROGRAM …`.

Runs as a bare script (`python -I -S`), so that it starts in milliseconds. It is the last step before the program
itself: the kernel forgets the wish when the user changes, and never passes it on to a fork.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(stop_signal: int, parent_pid: int, owner: str, niceness: int, program: list[str]) -> None:
    """Become `program`, as `owner` (`USER:GROUP`, or `-`), to be sent the signal when the parent's thread ends."""
    os.nice(niceness)
    if owner != "-":
        user, group = map(int, owner.split(":"))
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, stop_signal)
    if os.getppid() != parent_pid:  # it ended before the wish was made
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
