"""One program under supervision: real child processes, small ones."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest

from chatsite.supervisor.component import Component
from chatsite.supervisor.errors import StartError
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.process import Supervised
from chatsite.supervisor.terminal import Terminal
from tests.chatsite.supervision import Transcript, is_running, wait_until


@pytest.fixture
def transcript():
    return Transcript()


@pytest.fixture
def guard(tmp_path):
    with (tmp_path / "lock").open("w") as lock, Guard(lock.fileno()) as guard:
        yield guard


def python(code: str, **fields) -> Component:
    return Component(name="program", command=(sys.executable, "-c", code), **fields)


@asynccontextmanager
async def kept_running(component, transcript, guard):
    supervised = Supervised(component, Terminal(transcript), guard)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervised.keep_running())
        try:
            yield supervised
        finally:
            await supervised.stop()


async def until(holds, what="it", seconds=20):
    await asyncio.to_thread(wait_until, holds, seconds=seconds, what=what)


async def test_what_a_program_prints_carries_its_name(transcript, guard):
    component = python("print('one\\rtwo'); print('x' * 200_000)")
    await Supervised(component, Terminal(transcript), guard).run_to_end()
    lines = transcript.getvalue().splitlines()
    assert lines[0] == "   program | one"
    assert lines[1] == "   program | two"
    assert sum(line.count("x") for line in lines) == 200_000


async def test_a_program_that_ends_is_started_again(tmp_path, transcript, guard):
    starts = tmp_path / "starts"
    code = f"import os, time\nopen({str(starts)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)"
    async with kept_running(python(code), transcript, guard):
        await until(lambda: starts.exists() and starts.read_text().endswith("\n"), "the first start")
        os.kill(int(starts.read_text()), signal.SIGKILL)
        await until(lambda: len(starts.read_text().splitlines()) == 2, "the second start")
    assert "program was ended by SIGKILL; next start in 0.5 s" in transcript.getvalue()


async def test_a_program_that_fails_at_once_is_given_longer_and_longer_pauses(transcript, guard):
    async with kept_running(python("raise SystemExit(3)"), transcript, guard) as supervised:
        await until(lambda: supervised.failures == 2, "two failures")
    said = transcript.getvalue()
    assert said.index("ended with code 3; next start in 0.5 s") < said.index("ended with code 3; next start in 1 s")


async def test_waiting_for_a_program_that_cannot_start_ends_with_a_sentence(transcript, guard):
    async with kept_running(
        python("raise SystemExit(3)", is_ready=lambda: asyncio.sleep(0, False)), transcript, guard
    ) as it:
        with pytest.raises(StartError, match="program does not start; its last lines above say why"):
            await it.wait_until_ready()


async def test_a_component_is_not_ready_before_its_probe_says_so(transcript, guard):
    answer = False

    async def is_ready() -> bool:
        return answer

    async with kept_running(python("import time; time.sleep(60)", is_ready=is_ready), transcript, guard) as supervised:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(supervised.wait_until_ready(), 0.5)
        answer = True
        await asyncio.wait_for(supervised.wait_until_ready(), 10)
    assert "program is ready after" in transcript.getvalue()


async def test_a_program_that_ignores_its_stop_is_ended_after_its_grace(transcript, guard):
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
    )
    async with kept_running(python(code, grace_seconds=0.3), transcript, guard) as supervised:
        await until(lambda: "deaf" in transcript.getvalue(), "its start")
        began = time.monotonic()
        await supervised.stop()
        assert time.monotonic() - began < 10
    assert "program does not stop by itself; ending it" in transcript.getvalue()


async def test_a_program_can_be_ended_at_once_while_it_is_being_stopped(transcript, guard):
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(300)"
    )
    async with kept_running(python(code, grace_seconds=250), transcript, guard) as supervised:
        await until(lambda: "deaf" in transcript.getvalue(), "its start")
        stopping = asyncio.create_task(supervised.stop())
        await asyncio.sleep(0)
        supervised.kill()
        await asyncio.wait_for(stopping, 20)


async def test_the_children_of_a_program_that_died_are_ended(tmp_path, transcript, guard):
    code = (
        "import subprocess, os\np = subprocess.Popen(['sleep', '300'])\nprint('child', p.pid, flush=True)\nos._exit(1)"
    )
    async with kept_running(python(code), transcript, guard):
        await until(lambda: "child " in transcript.getvalue(), "its child")
        child = int(transcript.getvalue().partition("child ")[2].split()[0])
        await until(lambda: not is_running(child), "the child's end")


DEAF = """
import os, signal, subprocess, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
child = None if sys.argv[2:] else subprocess.Popen([sys.executable, __file__, sys.argv[1], "grandchild"])
with open(sys.argv[1], "a") as pids:
    pids.write(f"{os.getpid()}\\n")
time.sleep(300)
"""
SUPERVISOR = """
import asyncio, sys
from chatsite.supervisor.component import Component
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.process import Supervised
from chatsite.supervisor.terminal import Terminal

async def main(lock, *command):
    with open(lock, "w") as file, Guard(file.fileno()) as guard:
        await Supervised(Component(name="it", command=(sys.executable, *command)), Terminal(), guard).keep_running()

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_killed_supervisor_leaves_neither_children_nor_grandchildren_that_ignore_signals(tmp_path):
    deaf, pids = tmp_path / "deaf.py", tmp_path / "pids"
    deaf.write_text(DEAF)
    command = [sys.executable, "-c", SUPERVISOR, str(tmp_path / "lock"), str(deaf), str(pids)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as supervisor:
        try:
            wait_until(lambda: pids.exists() and pids.read_text().count("\n") == 2, what="the start of both")
        finally:
            supervisor.kill()
    numbers = [int(line) for line in pids.read_text().split()]
    wait_until(lambda: not any(is_running(number) for number in numbers), what="the end of both")
