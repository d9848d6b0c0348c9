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

from inference.testing.processes import TwinProcess, twin_process
from inference.testing.settings import TwinSettings

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS = 40
ABSENT_MODEL = "http://127.0.0.1:9"
"""Nothing listens there: the model `large` of these tests is still on its way."""


@dataclass(slots=True)
class Site:
    """Where the site is, and what it runs on."""

    url: str
    twin: TwinProcess
    environment: dict[str, str]
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
            "LOG_LEVEL": "WARNING",
        }
        site = Site(f"http://127.0.0.1:{port}", twin, environment)
        site.manage("migrate", "--verbosity=0")
        made = site.manage("shell", "--no-imports", "-c", "from tests.browser.people import make_people; make_people()")
        site.people, site.limited = (json.loads(made)[name] for name in ("people", "limited"))
        web = ["-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "chatsite.asgi:application"]
        stack.enter_context(_process(web, environment, home / "web.log"))
        stack.enter_context(_process(["manage.py", "run_inference_worker"], environment, home / "worker.log"))
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


@contextmanager
def _process(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


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
