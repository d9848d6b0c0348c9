"""The running site that the browser visits: a database of its own, and people who are signed in."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import redis

from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.running_site import ROOT, RunningSite, wait_until

READY_SECONDS = 120
ABSENT_MODEL = "http://127.0.0.1:9"
"""Nothing listens there: the model `large` of these tests is still on its way."""


@dataclass
class VisitedSite(RunningSite):
    """A site, and who may be sat before a browser: an email address and a session's cookie each."""

    people: list[dict[str, str]] = field(default_factory=list)
    limited: dict[str, str] = field(default_factory=dict)

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it printed."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self._environment(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def is_ready(self) -> bool:
        """Whether pages are served, and offer the model that is there and not the one that is not."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False


@contextmanager
def visited_site(home: Path) -> Iterator[VisitedSite]:
    """Start everything on free ports, with its log in `home`; end it, and forget its data, at the end of the block."""
    with ExitStack() as stack:
        twin = stack.enter_context(twin_process(TwinSettings(token_ms=10, prefill_ms=20)))
        environment = {
            "DATABASE_URL": stack.enter_context(_own_database()),
            "REDIS_KEY_PREFIX": f"browser-{os.getpid()}",
            "DATA_DIR": str(home),
            "MODEL_FLEET": f"small={twin.url};large={ABSENT_MODEL}",
            "EMAIL_VERIFICATION": "optional",
            "GRACE_SECONDS": "30",  # a busy machine takes its time to start a web process again
            "LOG_LEVEL": "WARNING",
        }
        site = VisitedSite([twin], environment, log=home / "site.log")
        stack.callback(_forget_keys, environment["REDIS_KEY_PREFIX"])
        site.manage("migrate", "--verbosity=0")
        made = site.manage("shell", "--no-imports", "-c", "from tests.browser.people import make_people; make_people()")
        site.people, site.limited = (json.loads(made)[name] for name in ("people", "limited"))
        stack.callback(site.stop)
        site.start_web()
        site.start_worker()
        wait_until(site.is_ready, READY_SECONDS, f"the site, whose log is {site.log},")
        yield site


@contextmanager
def _own_database() -> Iterator[str]:
    name = f"browser_{os.getpid()}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _forget_keys(prefix: str) -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for name in client.scan_iter(match=f"{prefix}*", count=1000):
            client.unlink(name)
