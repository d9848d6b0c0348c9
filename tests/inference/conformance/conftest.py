import os
import socket
import subprocess
import sys

import pytest

from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.inference.conformance.target import Target

PERMITS = 6


def _targets():
    yield "twin"
    yield pytest.param("local", marks=[pytest.mark.real_model, pytest.mark.timeout(300)])
    if os.environ.get("TGI_URL"):
        yield pytest.param("url", marks=pytest.mark.real_model)


@pytest.fixture(scope="session", params=_targets())
def target(request):
    """Each server that is to keep the protocol: the twin, the embedded one, and the one that TGI_URL names."""
    return request.getfixturevalue(f"{request.param}_target")


@pytest.fixture(scope="session")
def twin_target():
    settings = TwinSettings(prefill_ms=2, token_ms=0, answer_tokens=2_000, permits=PERMITS, batch_size=2)
    with twin_process(settings) as twin:
        yield Target("twin", twin.url, PERMITS)


@pytest.fixture(scope="session")
def local_target():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    arguments = ["--model", "small", "--port", str(port), "--max-concurrent-requests", str(PERMITS)]
    command = [sys.executable, "-m", "inference.local_server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert any("serving" in line for line in server.stdout), "the local server ended instead of serving"
        yield Target("local", f"http://127.0.0.1:{port}", PERMITS)
        server.terminate()


@pytest.fixture(scope="session")
def url_target():
    return Target("url", os.environ["TGI_URL"].rstrip("/"))
