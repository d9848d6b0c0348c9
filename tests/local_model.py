"""The real small model, served on the CPU for tests marked `real_model`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.own_processes import free_port


@contextmanager
def served_model(*, window_tokens: int) -> Iterator[str]:
    """The address of a local model server for as long as the block lasts."""
    port = free_port()
    options = ("--model", "small", "--port", str(port), "--window-tokens", str(window_tokens))
    command = [sys.executable, "-m", "inference.local_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert any("serving" in line for line in server.stdout), "the local model server ended instead of serving"
        yield f"http://127.0.0.1:{port}"
        server.terminate()
