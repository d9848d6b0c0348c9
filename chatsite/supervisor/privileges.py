"""How PostgreSQL, which refuses to run as root, is run by root."""

import functools
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass

NOBODY = 65534


@dataclass(frozen=True)
class Privileges:
    """A wrapper in front of the program, and the account that it changes to (`-` for none)."""

    prefix: tuple[str, ...] = ()
    owner: str = "-"
    user: int | None = None
    group: int | None = None


@functools.cache
def ordinary_privileges() -> Privileges:
    """Return how a program is run as anybody but root.

    As root, best inside a user namespace that shows root as nobody: files stay root's, no account is made, and no
    directory needs to be opened to others. Where the kernel forbids that, as the account `nobody`.
    """
    if os.geteuid() != 0:
        return Privileges()
    unshare = shutil.which("unshare")
    if unshare:
        prefix = (unshare, "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return Privileges(prefix=prefix)
    account = pwd.getpwnam("nobody")
    return Privileges(owner=f"{account.pw_uid}:{account.pw_gid}", user=account.pw_uid, group=account.pw_gid)
