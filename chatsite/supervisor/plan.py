"""Which programs make up the stack, from the settings."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from django.conf import settings
from prometheus_client.multiprocess import mark_process_dead

from chatsite.supervisor import postgresql, probes, valkey
from chatsite.supervisor.component import Component, always_ready
from chatsite.supervisor.postgresql import Cluster
from chatsite.supervisor.privileges import ordinary_privileges
from chatsite.supervisor.valkey import Store
from chatsite.supervisor.workspace import Workspace

WEB_POOL_SIZE = 20
WORKER_DRAIN_SECONDS = 3
"""At Ctrl-C somebody waits; what is not finished by then is continued at the next start."""
MODEL_NICENESS = 5
"""A model takes every core it gets; the page goes first."""
BACKGROUND_NICENESS = 10
"""What Celery does has time; answers go first."""
MODEL_SEATS = 2
"""Answers that a local model writes at once. Whoever comes then waits in the product's own queue, which is fair."""
POSTGRESQL_SETTINGS = {
    # An acknowledged message is on the disk.
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "log_checkpoints": "off",
}
VALKEY_SETTINGS = {"appendonly": "yes", "appendfsync": "everysec"}


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the person who starts the stack said; an address that is given is used, not started."""

    host: str
    port: int
    host_header: str
    database_url: str
    redis_url: str
    model_fleet: str
    models: tuple[str, ...]
    workers: int = 1


class Plan:
    """The stack's components, in the order of the stages that start them."""

    def __init__(self, wishes: Wishes, workspace: Workspace) -> None:
        self.wishes = wishes
        self._workspace = workspace
        self._cluster = Cluster(workspace.data / "postgresql", workspace.sockets)
        self._store = Store(workspace.data / "valkey", workspace.sockets)
        self._model_ports = (
            {} if wishes.model_fleet else dict(zip(wishes.models, self._free_model_ports(), strict=True))
        )

    @cached_property
    def environment(self) -> dict[str, str]:
        """What every program of the product is told."""
        own_fleet = ";".join(
            f"{model}=http://127.0.0.1:{port}#permits={MODEL_SEATS}" for model, port in self._model_ports.items()
        )
        return {
            "DATA_DIR": str(self._workspace.data),
            "DATABASE_URL": self.wishes.database_url or self._cluster.url(),
            "REDIS_URL": self.wishes.redis_url or self._store.url(),
            "MODEL_FLEET": self.wishes.model_fleet or own_fleet,
            "HOST": self.wishes.host,
            "PORT": str(self.wishes.port),
            "PYTHONUNBUFFERED": "1",
            "PROMETHEUS_MULTIPROC_DIR": str(self._workspace.metrics),
        }

    @property
    def local_host(self) -> str:
        """The address at which this machine itself reaches the page."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.wishes.host, self.wishes.host)  # noqa: S104

    @property
    def address(self) -> str:
        """What to open in a browser."""
        host = self.local_host
        shown = "localhost" if host in ("127.0.0.1", "::1") else f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.wishes.port}/"

    def stores(self) -> list[Component]:
        found = []
        if not self.wishes.database_url:
            found.append(self._database())
        if not self.wishes.redis_url:
            found.append(self._redis())
        return found

    def models(self) -> list[Component]:
        return [self._model(name, port) for name, port in self._model_ports.items()]

    def migration(self) -> Component:
        return self._managed("migrate", "migrate", "--noinput")

    def fleet_seeding(self) -> Component:
        return self._managed("fleet", "seed_fleet")

    def static_collection(self) -> Component:
        return self._managed("static", "collect_changed_static")

    def servers(self) -> list[Component]:
        workers = [self._worker(number) for number in range(1, self.wishes.workers + 1)]
        return [self._web(), *workers, self._celery(), self._bulk(), self._beat()]

    def first_account(self) -> Component:
        """What makes the first staff account, and prints how to sign in."""
        return self._managed("account", "make_first_staff_account")

    def tell_addresses(self) -> None:
        """Leave the addresses where `settings.py` finds them, so that management commands need not be told."""
        told = {name: self.environment[name] for name in ("DATABASE_URL", "REDIS_URL", "MODEL_FLEET")}
        self._addresses.touch(mode=0o600)
        self._addresses.write_text("".join(f"{name}={value}\n" for name, value in told.items()))

    def forget_addresses(self) -> None:
        """Take them away: nothing answers there any more."""
        self._addresses.unlink(missing_ok=True)

    @property
    def _addresses(self) -> Path:
        return self._workspace.data / "stack.env"

    def create_database(self) -> None:
        """Make the product's database where the server is our own."""
        if not self.wishes.database_url:
            postgresql.create_database(self._cluster)

    def _free_model_ports(self) -> list[int]:
        return probes.free_ports(self.wishes.port + 100, len(self.wishes.models))

    def _database(self) -> Component:
        return Component(
            name="database",
            command=tuple(postgresql.server_command(self._cluster, **POSTGRESQL_SETTINGS)),
            prepare=self._prepare_cluster,
            is_ready=_in_a_thread(partial(postgresql.is_ready, self._cluster)),
            stop_signal=postgresql.STOP_SIGNAL,
            kill_signal=postgresql.KILL_SIGNAL,
            grace_seconds=30,
            privileges=ordinary_privileges(),
        )

    def _prepare_cluster(self) -> None:
        postgresql.create(self._cluster)
        postgresql.clear_stale_lock(self._cluster)

    def _redis(self) -> Component:
        self._store.data.mkdir(mode=0o700, exist_ok=True)
        return Component(
            name="redis",
            command=tuple(valkey.server_command(self._store, **VALKEY_SETTINGS)),
            is_ready=_in_a_thread(partial(valkey.is_ready, self._store)),
            grace_seconds=15,
        )

    def _model(self, name: str, port: int) -> Component:
        options = ("--model", name, "--port", str(port), "--parallel", str(MODEL_SEATS))
        return Component(
            name=name,
            command=(sys.executable, "-m", "inference.local_server", *options),
            environment={"PYTHONUNBUFFERED": "1", "DATA_DIR": str(self._workspace.data)},
            is_ready=partial(probes.answers, "127.0.0.1", port, "/health"),
            niceness=MODEL_NICENESS,
            grace_seconds=3,
        )

    def _web(self) -> Component:
        command = (sys.executable, "-m", "chatsite.web", "-b", self.wishes.host, "-p", str(self.wishes.port))
        return Component(
            name="web",
            command=(*command, "chatsite.asgi:application"),
            environment={**self.environment, "DATABASE_POOL_SIZE": str(WEB_POOL_SIZE)},
            forget=self._forget_numbers,
            is_ready=partial(
                probes.answers,
                self.local_host,
                self.wishes.port,
                "/healthz",
                host_header=self.wishes.host_header,
            ),
            grace_seconds=6,
        )

    def _worker(self, number: int) -> Component:
        drain = {"WORKER_DRAIN_SECONDS": str(WORKER_DRAIN_SECONDS)}
        is_ready = partial(self._reports_ready, "worker")
        name = "worker" if number == 1 else f"worker-{number}"
        return self._managed(name, "run_inference_worker", environment=drain, is_ready=is_ready)

    def _celery(self) -> Component:
        return self._celery_worker("celery", settings.CELERY_TASK_DEFAULT_QUEUE)

    def _bulk(self) -> Component:
        return self._celery_worker("bulk", settings.BULK_QUEUE)

    def _celery_worker(self, name: str, queue: str) -> Component:
        # Threads: a killed process pool leaves children that wait for their work to end.
        # As root Celery warns at length; its messages are JSON, so that there is nothing to warn of.
        python = (sys.executable, "-W", "ignore:You're running the worker with superuser", "-m", "celery")
        options = ("--pool=threads", "--concurrency=2", "--loglevel=WARNING", "--without-gossip", "--without-mingle")
        own = (f"--queues={queue}", f"--hostname={name}@%h")
        return Component(
            name=name,
            command=(*python, "--quiet", "-A", "chatsite", "worker", *options, *own),
            environment=self.environment,
            is_ready=partial(self._reports_ready, name),
            forget=self._forget_numbers,
            niceness=BACKGROUND_NICENESS,
            grace_seconds=8,
        )

    def _beat(self) -> Component:
        schedule = self._workspace.data / "celerybeat-schedule"
        options = ("--loglevel=WARNING", f"--schedule={schedule}", "--pidfile=")
        return Component(
            name="beat",
            command=(sys.executable, "-m", "celery", "--quiet", "-A", "chatsite", "beat", *options),
            environment=self.environment,
            forget=self._forget_numbers,
            grace_seconds=6,
        )

    def _managed(
        self,
        name: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        is_ready: Callable[[], Awaitable[bool]] = always_ready,
    ) -> Component:
        manage = Path(__file__).resolve().parents[2] / "manage.py"
        return Component(
            name=name,
            command=(sys.executable, str(manage), *arguments),
            environment={**self.environment, **(environment or {})},
            is_ready=is_ready,
            forget=self._forget_numbers,
        )

    def _forget_numbers(self, pid: int) -> None:
        """Take away what a process that has ended said of its present state; what it counted stays counted."""
        mark_process_dead(pid, str(self._workspace.metrics))  # type: ignore[no-untyped-call]

    async def _reports_ready(self, name: str) -> bool:
        found = await probes.readiness(self.local_host, self.wishes.port, host_header=self.wishes.host_header)
        return bool(found.get(name, {}).get("status") == "up")


def _in_a_thread(check: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    return partial(asyncio.to_thread, check)
