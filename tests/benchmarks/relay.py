"""`python -m tests.benchmarks relay`: measures the product beside its model server, and prints a table."""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import uvloop

from tests.benchmarks import figures, loads, machine, report
from tests.benchmarks.client import Request
from tests.benchmarks.figures import Measured, Round
from tests.benchmarks.loads import Load, lay_on
from tests.benchmarks.product import Account, Group, Product, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
MOST_SECONDS = 570
_PAUSE_SECONDS = 1.0


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    chosen = [load for load in (loads.QUICK if options.quick else loads.FULL) if options.only in load.title]
    described = machine.describe()
    with running_product() as product:
        rounds = uvloop.run(_measure(product, chosen, options.rounds))
    rows = [figures.row_of([each for each in rounds if each.load == load.title]) for load in chosen]
    text = report.table(rows, described, len(rounds) // len(chosen))
    print(text)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_bytes(orjson.dumps(figures.as_json(rounds, rows, described), option=orjson.OPT_INDENT_2))
    print(f"Everything that was measured: {options.json}")
    if options.write:
        report.write_between_markers(DOCUMENT, text, "benchmark")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks relay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of smaller loads, about a minute")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the loads with TEXT in their title")
    parser.add_argument("--rounds", type=int, help="how often each load is measured; 3, or 1 with --quick")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "var" / "benchmark.json", help="where everything is written"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


async def _measure(product: Product, chosen: list[Load], rounds: int) -> list[Round]:
    answers = sum(load.answers for load in chosen) * rounds
    [made] = await asyncio.to_thread(product.make_accounts, Group(answers + 1))
    accounts = iter(made)
    await lay_on(loads.one_stream(1), [_to_product(product, next(accounts), loads.one_stream(1))], product.read_meter)
    measured: list[Round] = []
    began = time.monotonic()
    for number in range(rounds):
        measured += [await _round(product, load, accounts, number) for load in chosen]
        spent_seconds = time.monotonic() - began
        if spent_seconds * (number + 2) / (number + 1) > MOST_SECONDS:
            break  # the machine is slow today: another round would take too long
    return measured


async def _round(product: Product, load: Load, accounts: Iterator[Account], number: int) -> Round:
    """Measure both paths, the one right after the other, in turns which comes first."""
    requests = {
        "direct": [_to_twin(product, load)] * load.answers,
        "product": [_to_product(product, next(accounts), load) for _ in range(load.answers)],
    }
    results: dict[str, Measured] = {}
    for path in sorted(requests, reverse=bool(number % 2)):
        results[path] = figures.measured(await lay_on(load, requests[path], product.read_meter))
        await asyncio.sleep(_PAUSE_SECONDS)
    return Round(load.title, results["direct"], results["product"], os.getloadavg()[0])


def _to_twin(product: Product, load: Load) -> Request:
    body = {
        "model": "twin",
        "messages": [{"role": "user", "content": load.prompt()}],
        "max_tokens": load.tokens + 1,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return Request(product.stack.twin.port, "/v1/chat/completions", body)


def _to_product(product: Product, account: Account, load: Load) -> Request:
    path = f"/v1/conversations/{account.conversation_id}/messages"
    return Request(product.port, path, {"content": load.prompt()}, bearer=account.key)
