"""The whole site as real processes: model server (the twin), web and worker, on a database of its own."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

from inference.testing.processes import TwinProcess, twin_process
from inference.testing.settings import TwinSettings

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS = 40
ABSENT_MODEL = "http://127.0.0.1:9"
"""Nothing listens there: the model `large` of these tests is still on its way."""


class Process:
    """One of the site's processes; it can be killed and come back."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self._command = [sys.executable, *arguments]
        self._environment = environment
        self._log = log
        self._child = self._start()

    def kill(self) -> None:
        """As `kill -9`."""
        self._child.kill()
        self._child.wait()

    def start(self) -> None:
        """Start it again after it was killed."""
        self._child = self._start()

    def stop(self) -> None:
        """End it properly."""
        self._child.terminate()
        try:
            self._child.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, cwd=ROOT, env=self._environment, stdout=output, stderr=output)


@dataclass(slots=True)
class Site:
    """Where the site is, and what it runs on."""

    url: str
    twin: TwinProcess
    environment: dict[str, str]
    web: Process | None = None
    people: list[dict[str, str]] = field(default_factory=list)
    limited: dict[str, str] = field(default_factory=dict)

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it printed."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()


@contextmanager
def running_site() -> Iterator[Site]:
    """Start everything on free ports; end it, and forget its data, at the end of the block."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-browser-")))
        twin = stack.enter_context(twin_process(TwinSettings(token_ms=10, prefill_ms=20)))
        database_url = stack.enter_context(_own_database())
        port = _free_port()
        environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_KEY_PREFIX": f"browser-{os.getpid()}",
            "DATA_DIR": str(home),
            "MODEL_FLEET": f"small={twin.url};large={ABSENT_MODEL}",
            "SITE_URL": f"http://127.0.0.1:{port}",
            "EMAIL_VERIFICATION": "optional",
            "GRACE_SECONDS": "30",  # a busy machine takes its time to start a web process again
            "LOG_LEVEL": "WARNING",
        }
        site = Site(f"http://127.0.0.1:{port}", twin, environment)
        site.manage("migrate", "--verbosity=0")
        made = site.manage("shell", "--no-imports", "-c", "from tests.browser.people import make_people; make_people()")
        site.people, site.limited = (json.loads(made)[name] for name in ("people", "limited"))
        web = ["-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "chatsite.asgi:application"]
        stack.callback(_forget_keys, environment)
        site.web = Process(web, environment, home / "web.log")
        stack.callback(site.web.stop)
        stack.callback(Process(["manage.py", "run_inference_worker"], environment, home / "worker.log").stop)
        _wait_until_ready(site, home)
        yield site


@contextmanager
def _own_database() -> Iterator[str]:
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = f"browser_{os.getpid()}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlunsplit(parts._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _forget_keys(environment: dict[str, str]) -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for name in client.scan_iter(match=f"{environment['REDIS_KEY_PREFIX']}*", count=1000):
            client.unlink(name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(site: Site, home: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not _is_ready(site):
        if time.monotonic() > deadline:
            logs = "\n".join(f"{log.name}:\n{log.read_text(errors='replace')}" for log in sorted(home.glob("*.log")))
            raise RuntimeError(f"The site did not become ready.\n{logs}")
        time.sleep(0.1)


def _is_ready(site: Site) -> bool:
    """Whether pages are served, and the page offers the model that is there and not the one that is not."""
    try:
        with urllib.request.urlopen(f"{site.url}/readyz", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False
