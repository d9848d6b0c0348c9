"""`python -m tests.benchmarks large_account`: exporting, importing and erasing an account that has very much."""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks import machine, report
from tests.benchmarks.product import Product, running_product
from tests.own_processes import ROOT, wait_until

DOCUMENT = ROOT / "docs" / "performance.md"
_MOST_SECONDS = 3_000
_BOUNDARY = "of-the-benchmark"
_FORM_HEAD = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="export.zip"\r\n\r\n'
_COLUMNS = (
    "what",
    "time, s",
    "bulk worker's CPU, s",
    "file, MB",
    "bulk worker, most MiB (before)",
    "web process, most MiB (before)",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls the product with one key."""

    port: int
    key: str

    def call(self, method: str, address: str, body: bytes | None = None, **headers: str) -> bytes:
        """Return the answer's body. An address may be another site's view of this product: only its path counts."""
        path = "/" + address.split("/", 3)[3] if address.startswith("http") else address
        sent = {"Authorization": f"Bearer {self.key}", **headers}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, sent, method=method)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read()

    def told(self, *what: Any, **headers: str) -> dict[str, Any]:
        return json.loads(self.call(*what, **headers))


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product() as product:
        command = [sys.executable, "-m", "tests.benchmarks.large_account_rows", *map(str, options.size)]
        environment = {**os.environ, **product.stack.addresses}
        made = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
        large, other = (Caller(product.port, key) for key in json.loads(made.stdout))
        rows = list(_rows(product, large, other))
        described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    size = "- {:,} conversations of {} messages\n\n".format(*options.size)
    text = f"{report.described(described)}{size}{report.plain_table(_COLUMNS, rows)}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "large-account")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks large_account", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the conversations")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args(arguments)
    options.size = (500 if options.quick else 5_000, 20)
    return options


def _rows(product: Product, large: Caller, other: Caller) -> Iterator[list[str]]:
    archives: list[bytes] = []

    def export() -> int:
        archives.append(_exported(large))
        return len(archives[0])

    yield _measured(product, "export, and fetch the file", export)
    yield _measured(product, "import into another account", lambda: _import(other, archives[0]))
    yield _measured(product, "erase the account", lambda: _erase(large))


def _measured(product: Product, name: str, work: Callable[[], int]) -> list[str]:
    processes = [psutil.Process(product.stack.pid_of(part)) for part in ("bulk", "web")]
    before = [process.memory_info().rss / 2**20 for process in processes]
    for process in processes:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # forgets the most that it had
    began, cpu_began = time.monotonic(), _cpu_seconds(processes[0])
    byte_count = work()
    seconds, cpu_seconds = time.monotonic() - began, _cpu_seconds(processes[0]) - cpu_began
    memory = [f"{_most_mib(process):.0f} ({had:.0f})" for process, had in zip(processes, before, strict=True)]
    return [name, f"{seconds:.1f}", f"{cpu_seconds:.1f}", f"{byte_count / 1e6:.1f}" if byte_count else "–", *memory]


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _most_mib(process: psutil.Process) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    [most] = [line for line in lines if line.startswith("VmHWM")]
    return int(most.split()[1]) / 1024


def _exported(caller: Caller) -> bytes:
    address = f"/v1/exports/{caller.told('POST', '/v1/exports')['export_id']}"
    _wait_until(lambda: caller.told("GET", address)["status"] == "done", address)
    return caller.call("GET", f"{address}/file")


def _import(caller: Caller, archive: bytes) -> int:
    body = b"%s%s\r\n--%s--\r\n" % (_FORM_HEAD.encode(), archive, _BOUNDARY.encode())
    content_type = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    address = f"/v1/imports/{caller.told('POST', '/v1/imports', body, **content_type)['import_id']}"
    _wait_until(lambda: caller.told("GET", address)["status"] == "done", address)
    return len(archive)


def _erase(caller: Caller) -> int:
    receipt = caller.told("DELETE", "/v1/account")["receipt_url"]
    _wait_until(lambda: caller.told("GET", receipt, Accept="application/json")["status"] == "completed", "the erasure")
    return 0


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, _MOST_SECONDS, what)
