"""`python -m tests.benchmarks reservations`: what it takes to reserve, to settle and to look, alone and 500 at once."""

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.benchmarks import machine, report
from tests.benchmarks.figures import Quantiles
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_STEPS = ("one after the other", "time p50 / p95 / p99, ms", "statements")
_RUSHES = ("at once", "calls", "let in", "calls/s", "time p50 / p95 / p99, ms")


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    # The tests' stores, whose PostgreSQL waits for no disk; importing it starts them.
    importlib.import_module("tests.stores")
    _run("manage.py", "migrate", "--verbosity=0")
    made = _run("-m", "tests.benchmarks.ledger", "50" if options.quick else "500")
    described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    text = f"{report.described(described)}\n{_figures(json.loads(made))}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "reservations")


def _run(*command: str) -> bytes:
    environment = {**os.environ, "LOG_LEVEL": "ERROR"}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks reservations", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser.parse_args(arguments)


def _figures(made: dict[str, Any]) -> str:
    steps = [
        [each["name"], report.quantiles(Quantiles.of(each["times_ms"])), str(each["statements"])]
        for each in made["steps"]
    ]
    rushes = [
        [
            each["name"],
            str(each["calls"]),
            str(each["let_in"]),
            f"{each['calls'] / each['seconds']:,.0f}",
            report.quantiles(Quantiles.of(each["times_ms"])),
        ]
        for each in made["rushes"]
    ]
    return "\n".join([report.plain_table(_STEPS, steps), report.plain_table(_RUSHES, rushes)])
