"""The numbers of several processes on one page, and those of a worker at a port of its own."""

import asyncio
import os
import socket
import subprocess
import sys
import urllib.request

import pytest
from django.test import override_settings
from prometheus_client.parser import text_string_to_metric_families

from chatsite.supervisor.component import Component
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.plan import Plan, Wishes
from chatsite.supervisor.process import Supervised
from chatsite.supervisor.terminal import Terminal
from chatsite.supervisor.workspace import open_workspace
from foundation.metrics import exposition, served
from tests.accounts.factories import make_key, make_user
from tests.chatsite.asking import ask
from tests.chatsite.supervision import Transcript
from tests.running_site import ROOT, free_port, running_site

COUNT = """
from inference.metrics import ANSWERS, ANSWERS_UNDER_WAY, QUEUE_LENGTH
ANSWERS.labels("small", "v1", "stop").inc(3)
ANSWERS_UNDER_WAY.set(2)
QUEUE_LENGTH.labels("small", "free").set(7)
"""


def numbers(text: bytes) -> dict[tuple, float]:
    """Return each sample's value by its name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


LAG_COUNT = "chat_event_loop_lag_seconds_count"
STOPPED = ("chat_answers_total", ("finish_reason", "stop"), ("model", "small"), ("version", "v1"))
WAITING = ("chat_queue_length", ("model", "small"), ("priority_class", "free"))


@pytest.fixture
def directory(tmp_path):
    with override_settings(METRICS_DIRECTORY=str(tmp_path)):
        yield tmp_path


@pytest.fixture
def plan(tmp_path):
    wishes = Wishes(
        host="127.0.0.1",
        port=free_port(),
        host_header="localhost",
        database_url="postgresql://nobody@127.0.0.1:1/none",
        redis_url="redis://127.0.0.1:1/0",
        model_fleet="small=http://127.0.0.1:1",
        models=(),
    )
    with open_workspace(tmp_path / "data") as workspace:
        yield Plan(wishes, workspace)


def count_in_a_process(directory) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)}
    subprocess.run([sys.executable, "-c", COUNT], cwd=ROOT, env=environment, check=True)


def test_what_several_processes_count_is_told_as_one(directory):
    count_in_a_process(directory)
    count_in_a_process(directory)
    told = numbers(exposition())
    assert told[STOPPED] == 6
    assert told["chat_answers_under_way",] == 4
    assert told[WAITING] == 7


@pytest.mark.timeout(300)
def test_the_web_process_tells_what_the_worker_has_counted(transactional_db, tmp_path):
    secret = make_key(make_user("alice@example.com", tier="enterprise"))
    with running_site(PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) as site:
        done = ask(site.url, secret, '@twin {"text": "Counted."}\nHi')[-1].data
        told = numbers(_page(site.port))
    model, version, urgent = ("model", "small"), ("version", "small"), ("priority_class", "enterprise")
    assert told["chat_answers_total", ("finish_reason", "stop"), model, version] == 1
    assert told["chat_tokens_total", ("kind", "in"), model, version] == done["usage"]["in"]
    assert told["chat_tokens_total", ("kind", "out"), model, version] == done["usage"]["out"]
    assert told["chat_queue_wait_seconds_count", model, urgent] == 1
    assert told["chat_time_to_first_token_seconds_count", model, urgent, version] == 1
    until_text = told["chat_time_to_first_token_seconds_sum", model, urgent, version]
    assert 0 < told["chat_queue_wait_seconds_sum", model, urgent] < until_text < 150


@pytest.mark.timeout(300)
def test_every_process_tells_the_lag_of_its_event_loop(transactional_db, tmp_path):
    with running_site(PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) as site:
        silent = {"web", "worker"}
        while silent:  # a process measures it from a tenth of a second after its start; the time-out ends the wait
            told = numbers(_page(site.port))
            silent = {name for name in silent if not told.get((LAG_COUNT, ("process", name)))}


def test_a_file_without_a_number_spoils_nothing(directory):
    count_in_a_process(directory)
    (directory / "counter_1.db").touch()
    assert numbers(exposition())[STOPPED] == 3


async def test_a_process_that_has_ended_leaves_its_counts_and_takes_its_state_along(plan, tmp_path):
    directory = plan.environment["PROMETHEUS_MULTIPROC_DIR"]
    worker = next(component for component in plan.servers() if component.name == "worker")
    component = Component(
        name="worker",
        command=(sys.executable, "-c", COUNT),
        environment={**plan.environment, "PYTHONPATH": str(ROOT)},
        forget=worker.forget,
    )
    with (tmp_path / "lock").open("w") as lock, Guard(lock.fileno()) as guard:
        await Supervised(component, Terminal(Transcript()), guard).run_to_end()
    with override_settings(METRICS_DIRECTORY=directory):
        told = numbers(exposition())
    assert told[STOPPED] == 3
    assert ("chat_answers_under_way",) not in told
    assert WAITING not in told


def test_a_new_run_begins_with_no_numbers_of_the_last(tmp_path):
    with open_workspace(tmp_path) as first:
        (first.metrics / "counter_1.db").write_bytes(b"old")
        kept = first.metrics
        assert kept.stat().st_mode & 0o777 == 0o700
    assert not kept.exists()
    kept.mkdir(mode=0o700)
    (kept / "counter_1.db").write_bytes(b"of a run that was killed")
    with open_workspace(tmp_path) as second:
        assert second.metrics == kept
        assert list(kept.iterdir()) == []


async def test_a_worker_answers_its_numbers_at_a_port_of_its_own_while_it_works():
    port = free_port()
    with served("127.0.0.1", port):
        assert b"python_info" in await asyncio.to_thread(_page, port)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_that_is_taken_keeps_no_worker_from_its_work():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with served("127.0.0.1", taken.getsockname()[1]):
            pass


def _page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        return response.read()
