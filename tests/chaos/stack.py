"""The whole product as `manage.py run_all` runs it, with a twin as model server, and the means to kill its parts."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

from inference.testing.processes import TwinProcess
from inference.testing.settings import TwinSettings
from tests.own_processes import ROOT, free_port, wait_until

READY_SECONDS = 90
COMMANDS = {
    "web": "chatsite.asgi",
    "worker": "run_inference_worker",
    "redis": "valkey-server",
    "database": "pginstall/bin/postgres",
    "bulk": "--queues=bulk",
}
MODEL = "model"
MEMORY = "all that Redis holds"
PARTS = (*(part for part in COMMANDS if part != "bulk"), MODEL, MEMORY)


@dataclass
class Stack:
    """One running product."""

    data: Path
    port: int
    twin: TwinProcess
    supervisor: subprocess.Popen

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def addresses(self) -> dict[str, str]:
        """DATABASE_URL and REDIS_URL of the running stores."""
        found: dict[str, str] = {}
        for line in (self.data / "stack.env").read_text().splitlines():
            name, _, value = line.partition("=")
            found[name] = value
        return found

    def is_ready(self) -> bool:
        assert self.supervisor.poll() is None, "the supervisor ended"
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=3) as response:
                return response.status == 200
        except OSError:
            return False

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready, READY_SECONDS, "readiness")

    def manage(self, *arguments: str) -> str:
        """Run a management command beside the running stack, as its operator would."""
        command = [sys.executable, "manage.py", *arguments]
        environment = {**_without_addresses(), "DATA_DIR": str(self.data)}
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    def pid_of(self, part: str) -> int:
        """The process id of a part; of PostgreSQL, its postmaster's."""
        wanted = COMMANDS[part]
        found = [
            process
            for process in psutil.Process(self.supervisor.pid).children(recursive=True)
            if wanted in " ".join(_command_of(process)) and "leash" not in " ".join(_command_of(process))
        ]
        own = {process.pid for process in found}
        tops = [process for process in found if process.ppid() not in own]
        assert len(tops) == 1, (part, tops)
        return tops[0].pid

    def kill(self, part: str) -> None:
        """As `kill -9`; the supervisor brings the part back. The twin is nobody's child: it is started again here.

        Of what Redis holds nothing comes back.
        """
        if part == MODEL:
            self.twin.kill()
            self.twin.start()
        elif part == MEMORY:
            with redis.Redis.from_url(self.addresses["REDIS_URL"]) as client:
                client.flushall()
        else:
            os.kill(self.pid_of(part), signal.SIGKILL)

    def database(self) -> str:
        return self.addresses["DATABASE_URL"]


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _without_addresses() -> dict[str, str]:
    left_out = {"DATABASE_URL", "REDIS_URL", "MODEL_FLEET", "REDIS_KEY_PREFIX", "DJANGO_SETTINGS_MODULE"}
    return {name: value for name, value in os.environ.items() if name not in left_out}


@contextmanager
def running_stack(data: Path, log: Path, **environment: str) -> Iterator[Stack]:
    """Everything, for as long as the block lasts."""
    twin = TwinProcess(TwinSettings(token_ms=10, prefill_ms=30, max_input_tokens=90_000, max_total_tokens=99_000))
    twin.start()
    port = free_port()
    wishes = {"DATA_DIR": str(data), "PORT": str(port), "MODEL_FLEET": f"small={twin.url}", "MAX_ANSWER_TOKENS": "8192"}
    wishes["INFERENCE_WORKERS"] = "1"  # `pid_of` knows one of each part
    with log.open("wb") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "manage.py", "run_all"],
            cwd=ROOT,
            env={**_without_addresses(), **wishes, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stack = Stack(data, port, twin, supervisor)
    try:
        stack.wait_until_ready()
        yield stack
    finally:
        supervisor.send_signal(signal.SIGINT)
        try:
            supervisor.wait(40)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        twin.kill()
