"""A throw-away PostgreSQL and Valkey for the test run, started before Django reads its settings.

Loaded as a pytest plugin. Where `DATABASE_URL` or `REDIS_URL` is set, that store is used instead. With xdist the
controller starts them and the workers inherit their addresses: each has a database and a key prefix of its own.
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chatsite.supervisor import leash, postgresql, valkey
from chatsite.supervisor.privileges import Privileges, ordinary_privileges

READY_SECONDS = 60
# A test that waits for a lock for this long is stuck: it fails with a sentence instead of hanging.
POSTGRESQL_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "90s",
    "log_min_messages": "fatal",
}


def _start() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    os.environ["REDIS_KEY_PREFIX"] = f"test{worker}-{os.getpid()}"
    if "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
        return
    home = Path(tempfile.mkdtemp(prefix="chat-test-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    if "DATABASE_URL" not in os.environ:
        _start_postgresql(home)
    if "REDIS_URL" not in os.environ:
        _start_valkey(home)


def _start_postgresql(home: Path) -> None:
    privileges = ordinary_privileges()
    cluster = postgresql.Cluster(data=home / "postgresql", sockets=home)
    postgresql.create(cluster, durable=False)
    command = postgresql.server_command(cluster, **POSTGRESQL_SETTINGS)
    server = _spawn(command, home / "postgresql.log", postgresql.STOP_SIGNAL, privileges)
    _wait(server, lambda: postgresql.is_ready(cluster), home / "postgresql.log")
    postgresql.create_database(cluster)
    os.environ["DATABASE_URL"] = cluster.url()


def _start_valkey(home: Path) -> None:
    store = valkey.Store(data=home, sockets=home)
    server = _spawn(valkey.server_command(store), home / "valkey.log", signal.SIGTERM, Privileges())
    _wait(server, lambda: valkey.is_ready(store), home / "valkey.log")
    os.environ["REDIS_URL"] = store.url()


def _spawn(command: list[str], log: Path, stop: signal.Signals, privileges: Privileges) -> subprocess.Popen[bytes]:
    leashed = [
        sys.executable,
        "-I",
        "-S",
        leash.__file__,
        str(int(stop)),
        str(os.getpid()),
        privileges.owner,
        "0",
        *command,
    ]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*privileges.prefix, *leashed],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    atexit.register(_end, server, stop)
    return server


def _end(server: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    server.send_signal(stop)
    try:
        server.wait(15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], is_ready, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"A store for the tests did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.02)


_start()
