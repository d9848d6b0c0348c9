"""The whole product as `manage.py run_all` runs it for people, durable stores and all, on data that is thrown away."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import redis

from chatsite.supervisor import postgresql
from chatsite.supervisor.workspace import open_workspace
from inference.testing.processes import TwinProcess
from inference.testing.settings import TwinSettings
from tests.chaos.stack import READY_SECONDS, Stack
from tests.own_processes import ROOT, free_port, wait_until

MOST_STREAMS = 1024
STOP_SECONDS = 40
_SETTLE_SECONDS = 3.0
"""The catalogue is read once a second, and what follows from it told once a second."""


@dataclass(frozen=True, slots=True)
class Group:
    """So many conversations, dealt in turn to so many people of a class."""

    conversations: int
    users: int = 50
    priority_class: str = "enterprise"


@dataclass(frozen=True, slots=True)
class Account:
    """A conversation, and a key of whom it belongs to."""

    conversation_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What was used since the start: CPU seconds by part of the product, statements by their text."""

    cpu_seconds: dict[str, float]
    statements: dict[str, int]


class Product:
    """A running product, and the meters on it."""

    def __init__(
        self,
        stack: Stack,
        twins: Sequence[TwinProcess],
        database: psycopg.Connection,
        environment: Mapping[str, str],
    ) -> None:
        self.stack = stack
        self.twins = twins
        self._environment = environment
        self._database = database
        parts = {part: stack.pid_of(part) for part in ("web", "worker", "redis", "database")}
        self.processes = {part: psutil.Process(pid) for part, pid in parts.items()}
        self.processes |= {"twin": psutil.Process(stack.twin.pid), "client": psutil.Process()}

    @property
    def port(self) -> int:
        return self.stack.port

    def query(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        """Ask the product's database."""
        return self._database.execute(statement, parameters).fetchall()

    def drain(self, *, is_draining: bool) -> None:
        """Have the model servers given no new request, or given some again; return once that is so."""
        self._database.execute("UPDATE inference_replica SET is_draining = %s", [is_draining])
        time.sleep(_SETTLE_SECONDS)

    def permits_held(self) -> int:
        """Return how many requests the model servers have, by the permits."""
        with redis.Redis.from_url(self.stack.addresses["REDIS_URL"]) as client:
            return sum(client.zcard(name) for name in client.scan_iter(match="*:permits:*"))

    @contextmanager
    def another_worker(self) -> Iterator[None]:
        """One more worker, for as long as the block lasts."""
        with redis.Redis.from_url(self.stack.addresses["REDIS_URL"]) as client:
            command = [sys.executable, "manage.py", "run_inference_worker"]
            environment = {**self._environment, **self.stack.addresses}
            worker = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
            )
            try:
                wait_until(lambda: client.zcard("chat:1:workers") > 1, READY_SECONDS, "another worker")
                yield
            finally:
                _stop(worker)

    def make_accounts(self, *groups: Group) -> list[list[Account]]:
        """Make conversations of people who may send as much as they like, a list for each group."""
        wishes = [f"{group.priority_class}:{group.users}:{group.conversations}" for group in groups]
        command = [sys.executable, "-m", "tests.benchmarks.accounts", *wishes]
        environment = {**os.environ, **self.stack.addresses}
        made = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
        return [[Account(**account) for account in accounts] for accounts in json.loads(made.stdout)]

    def read_meter(self) -> Reading:
        return Reading(
            {part: _cpu_seconds(process, with_children=part == "database") for part, process in self.processes.items()},
            dict(self._database.execute(_STATEMENTS).fetchall()),
        )


_STATEMENTS = """
SELECT query, sum(calls)::bigint FROM pg_stat_statements
WHERE query NOT LIKE '%pg_stat_statements%' GROUP BY query
"""


def _cpu_seconds(process: psutil.Process, *, with_children: bool) -> float:
    used = 0.0
    for each in [process, *(process.children() if with_children else [])]:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue  # a database connection that has just been closed
        used += times.user + times.system
    return used


@contextmanager
def running_product(
    twins: Sequence[TwinSettings] = (TwinSettings(permits=2 * MOST_STREAMS),),
    *,
    permits: int = MOST_STREAMS,
    **environment: str,
) -> Iterator[Product]:
    """The product and its model servers, for as long as the block lasts; then nothing is left of them.

    Each model server is given `permits` requests at once.
    """
    with ExitStack() as undo:
        data = Path(tempfile.mkdtemp(prefix="chat-bench-"))
        undo.callback(shutil.rmtree, data, ignore_errors=True)
        undo.callback(shutil.rmtree, _prepare_database(data), ignore_errors=True)
        servers = [TwinProcess(settings) for settings in twins]
        for server in servers:
            server.start()
            undo.callback(server.kill)
        port = free_port()
        fleet = ",".join(server.url for server in servers)
        chosen = _environment(data, port) | {"MODEL_FLEET": f"small={fleet}"} | environment
        supervisor = _start(chosen, undo)
        stack = Stack(data, port, servers[0], supervisor)
        try:
            stack.wait_until_ready()
        except AssertionError as error:
            error.add_note((data / "stack.log").read_text()[-2000:])
            raise
        database = undo.enter_context(psycopg.connect(stack.database(), autocommit=True))
        database.execute("CREATE EXTENSION pg_stat_statements")
        database.execute("UPDATE inference_replica SET permits = %s", [permits])
        time.sleep(_SETTLE_SECONDS)
        yield Product(stack, servers, database, chosen)


def _prepare_database(data: Path) -> Path:
    """Make the database's files as the supervisor does, with a meter added; return the directory of its sockets."""
    with open_workspace(data) as workspace:
        cluster = postgresql.Cluster(data / "postgresql", workspace.sockets)
        postgresql.create(cluster)
        with (cluster.data / "postgresql.conf").open("a") as configuration:
            configuration.write("shared_preload_libraries = 'pg_stat_statements'\n")
        return workspace.sockets


def _environment(data: Path, port: int) -> dict[str, str]:
    left_out = ("DATABASE_URL", "REDIS_URL", "REDIS_KEY_PREFIX")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {
        "DATA_DIR": str(data),
        "PORT": str(port),
        "DEBUG": "false",
        "HTTPS": "false",
        "SECRET_KEY": secrets.token_urlsafe(64),
        "ALLOWED_HOSTS": "127.0.0.1",
        "INFERENCE_WORKERS": "1",
        "WORKER_CONCURRENCY": str(MOST_STREAMS),
    }


def _start(environment: dict[str, str], undo: ExitStack) -> subprocess.Popen:
    output = undo.enter_context((Path(environment["DATA_DIR"]) / "stack.log").open("wb"))
    supervisor = subprocess.Popen(
        [sys.executable, "manage.py", "run_all"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    undo.callback(_stop, supervisor)
    return supervisor


def _stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
