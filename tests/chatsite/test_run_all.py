"""`manage.py run_all`: the whole product, started, killed, started again and stopped."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from chatsite.supervisor.component import leashed
from chatsite.supervisor.probes import free_ports
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.chatsite.supervision import running_with, wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90


@contextmanager
def running_stack(data, fleet, log, **environment):
    """Start `run_all` on its own stores in `data`; what it prints goes to `log`."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    settings = {"DATA_DIR": str(data), "MODEL_FLEET": fleet, "DEBUG": "true", **environment}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            leashed((sys.executable, "manage.py", "run_all"), stop_signal=signal.SIGTERM),
            cwd=ROOT,
            env={**inherited, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def wait_until_said(log, pattern, seconds=START_SECONDS):
    return wait_until(lambda: re.search(pattern, log.read_text()), seconds=seconds, what=f"{pattern!r} in {log}")


def readiness(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.status, json.load(answer)["components"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["components"]
    except OSError:
        return 0, {}


@pytest.mark.timeout(400)
async def test_the_stack_comes_up_survives_kills_leaves_nothing_behind_and_stops_when_asked(tmp_path):
    async with running_twin(TwinSettings()) as twin:
        await asyncio.to_thread(_first_and_second_run, tmp_path, f"small={twin.url}")


def _first_and_second_run(tmp_path, fleet):
    data, port = tmp_path / "data dir", free_ports(20_300, 1)[0]
    first, other, second = tmp_path / "first.log", tmp_path / "other.log", tmp_path / "second.log"
    with running_stack(data, fleet, first, PORT=str(port)) as stack:
        wait_until_said(first, rf"ready: open http://localhost:{port}/")
        assert re.search(r"sign in as admin@localhost with the password \S{12,}", first.read_text())
        status, components = readiness(port)
        assert status == 200
        assert set(components) == {"database", "redis", "worker", "celery", "bulk", "small/1"}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            numbers = page.read().decode()
        assert all(f'chat_event_loop_lag_seconds_count{{process="{each}"}}' in numbers for each in ("web", "worker"))

        with running_stack(data, fleet, other, PORT=str(port + 1)) as another:
            assert another.wait(60) != 0
        assert f"Another run (process {stack.pid}) uses {data} already" in other.read_text()

        worker = next(pid for pid, command in running_with(str(data)).items() if "run_inference_worker" in command)
        os.kill(worker, signal.SIGKILL)
        wait_until_said(first, r"worker was ended by SIGKILL; next start in 0.5 s")
        wait_until(lambda: first.read_text().count("worker is ready") == 2, seconds=START_SECONDS, what="a new worker")

        stack.kill()
        stack.wait()
        wait_until(lambda: not running_with(str(data)), seconds=30, what="the end of every process")

    with running_stack(data, fleet, second, PORT=str(port)) as stack:
        wait_until_said(second, rf"ready: open http://localhost:{port}/")
        assert "sign in as" not in second.read_text()
        assert "FATAL" not in second.read_text()
        stack.send_signal(signal.SIGINT)
        assert stack.wait(60) == 0
    assert "stopped after" in second.read_text()
    assert running_with(str(data)) == {}


def test_without_a_production_secret_nothing_starts_and_one_sentence_says_why(tmp_path):
    log = tmp_path / "log"
    with running_stack(tmp_path, "small=http://127.0.0.1:1", log, DEBUG="false", SECRET_KEY="") as stack:
        assert stack.wait(60) == 1
    assert log.read_text() == (
        "Not started: With DEBUG=false, set SECRET_KEY to a private random string of 50 characters or more.\n"
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"MODEL_FLEET": "nonsense"}, "MODEL_FLEET: 'nonsense' does not begin with a model's name"),
        ({"DEFAULT_MODEL": "huge"}, "DEFAULT_MODEL is 'huge', which MODEL_FLEET does not name: small."),
        ({"PORT": "many"}, "PORT must be a whole number"),
        ({"PORT": "99999"}, "PORT must be a whole number"),
    ],
)
def test_a_setting_that_cannot_be_understood_stops_the_start_before_anything_runs(tmp_path, environment, sentence):
    log = tmp_path / "log"
    with running_stack(
        tmp_path, "small=http://127.0.0.1:1", log, **{"PORT": str(free_ports(20_400, 1)[0]), **environment}
    ) as stack:
        assert stack.wait(60) == 1
    assert log.read_text().startswith("Not started: ")
    assert sentence in log.read_text()
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"ALLOWED_HOSTS": ""}, "set ALLOWED_HOSTS to the host names of this site"),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must name hosts"),
        ({"DATABASE_URL": "postgresql://chat:postgres@db/chat"}, "must not carry a well-known default password"),
    ],
)
def test_an_unsafe_production_setting_stops_the_start_with_a_sentence(tmp_path, environment, sentence):
    log = tmp_path / "log"
    safe = {"DEBUG": "false", "SECRET_KEY": "k" * 60, "ALLOWED_HOSTS": "chat.example.org"}
    with running_stack(tmp_path, "small=http://127.0.0.1:1", log, **{**safe, **environment}) as stack:
        assert stack.wait(60) == 1
    assert sentence in log.read_text()
    assert "Traceback" not in log.read_text()
