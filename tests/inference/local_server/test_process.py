"""The server as the process that people start."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from inference.local_server.fetch import weights_path
from inference.local_server.local_models import SMALL
from tests.inference.local_server.asking import story

pytestmark = pytest.mark.real_model

COMMAND = [sys.executable, "-m", "inference.local_server", "--model", "small", "--threads", "1", "--port"]


@pytest.fixture
def port() -> int:
    weights_path(SMALL)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def started(command: list[str]):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_line(process: subprocess.Popen, wanted: str, seconds: float = 60) -> str:
    deadline = time.monotonic() + seconds
    while select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        if wanted in line:
            return line
    raise AssertionError(f"no line with {wanted!r}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_even_while_it_writes(port, number):
    with started([*COMMAND, str(port)]) as process:
        line = wait_for_line(process, "serving")
        assert f"http://127.0.0.1:{port}" in line
        body = json.dumps(story()).encode()
        request = Request(
            f"http://127.0.0.1:{port}/generate_stream", body, headers={"content-type": "application/json"}
        )
        with urlopen(request) as response:
            assert response.readline().startswith(b"data: ")
            process.send_signal(number)
            assert process.wait(timeout=20) == 0
        assert process.stderr.read() == ""


def test_it_dies_with_the_process_that_started_it(port):
    starter = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({[*COMMAND, str(port)]!r}, stdout=subprocess.PIPE, text=True)\n"
        "print(child.pid, flush=True)\n"
        "for line in child.stdout: print(line, flush=True)\n"
    )
    with started([sys.executable, "-c", starter]) as parent:
        child_pid = int(parent.stdout.readline())
        handle = os.pidfd_open(child_pid)
        wait_for_line(parent, "serving")
        parent.kill()
        ended, _, _ = select.select([handle], [], [], 20)
        os.close(handle)
        assert ended, "the server outlived its parent"


def test_a_port_in_use_is_a_sentence(port):
    with socket.create_server(("127.0.0.1", port)), started([*COMMAND, str(port)]) as process:
        assert process.wait(timeout=60) == 1
        assert f"127.0.0.1:{port} cannot be served: " in process.stderr.read()
