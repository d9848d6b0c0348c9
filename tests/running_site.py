"""The product as it runs for people: web and worker processes on the test stores, the twin as its model server."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from inference.fleet_seeding import apply_fleet
from inference.testing.processes import TwinProcess
from inference.testing.settings import TwinSettings
from tests.own_processes import ROOT, free_port, wait_until

READY_SECONDS = 60


def database_url_of_the_test() -> str:
    """The address of the database that the running test uses."""
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()


@dataclass
class RunningSite:
    """Web processes and workers, each of which can be killed and started again."""

    twins: list[TwinProcess]
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    web: subprocess.Popen | None = None
    workers: list[subprocess.Popen] = field(default_factory=list)
    log: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def twin(self) -> TwinProcess:
        return self.twins[0]

    def _environment(self) -> dict[str, str]:
        fleet = "small=" + ",".join(twin.url for twin in self.twins)
        return {
            **os.environ,
            "DATABASE_URL": database_url_of_the_test(),
            "REDIS_URL": settings.REDIS_URL,
            "REDIS_KEY_PREFIX": settings.REDIS_KEY_PREFIX,
            "MODEL_FLEET": fleet,
            "SITE_URL": self.url,
            "DEBUG": "true",
            "MAX_ANSWER_TOKENS": "8192",
            "WORKER_DRAIN_SECONDS": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "default",
            **self.environment,
        }

    def _spawn(self, *command: str, **environment: str) -> subprocess.Popen:
        output = self.log.open("ab") if self.log else subprocess.DEVNULL
        try:
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**self._environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        finally:
            if self.log:
                output.close()

    def start_web(self) -> None:
        if "DATABASE_URL" not in self.environment:
            # At once, not when a worker is up: another site may have left its fleet in this database.
            apply_fleet(self._environment()["MODEL_FLEET"])
        command = ["-m", "chatsite.web", "-b", "127.0.0.1", "-p", str(self.port), "chatsite.asgi:application"]
        self.web = self._spawn(*command, DATABASE_POOL_SIZE="8")
        wait_until(self._answers, READY_SECONDS, "the web process")

    def _answers(self) -> bool:
        assert self.web is not None
        assert self.web.poll() is None, "the web process ended"
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as response:
                return response.status == 200
        except OSError:
            return False

    def start_worker(self) -> subprocess.Popen:
        worker = self._spawn("manage.py", "run_inference_worker")
        self.workers.append(worker)
        return worker

    @contextmanager
    def celery(self) -> Iterator[subprocess.Popen]:
        """Run a Celery worker of both queues while the block lasts."""
        options = ("--pool=threads", "--concurrency=2", "--loglevel=WARNING", "--without-gossip", "--without-mingle")
        process = self._spawn("-m", "celery", "-A", "chatsite", "worker", "--queues=celery,bulk", *options)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def kill_web(self) -> None:
        assert self.web is not None
        self.web.kill()
        self.web.wait()

    def kill_worker(self) -> None:
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def stop_workers(self) -> None:
        _end(self.workers)
        self.workers.clear()

    def stop(self) -> None:
        _end([process for process in [self.web, *self.workers] if process is not None])


def _end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running_site(
    *, twins: int = 1, twin_settings: TwinSettings | None = None, log: Path | None = None, **environment: str
) -> Iterator[RunningSite]:
    """A site for as long as the block lasts."""
    started = [
        TwinProcess(
            twin_settings or TwinSettings(token_ms=2, prefill_ms=5, max_input_tokens=99_000, max_total_tokens=100_000)
        )
        for _ in range(twins)
    ]
    site = RunningSite(started, environment, log=log)
    try:
        for twin in started:
            twin.start()
        site.start_web()
        site.start_worker()
        yield site
    finally:
        site.stop()
        for twin in started:
            twin.kill()
