"""`python -m tests.benchmarks context`: how long a prompt takes to be made, and how often the cache has its history."""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import uvloop

from tests.benchmarks import machine, report
from tests.benchmarks.client import Answer, Request, ask
from tests.benchmarks.figures import Quantiles
from tests.benchmarks.product import Account, Group, Product, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
TOKENS = 20
_REGENERATED_SHARE = 0.1
_GENERATION = re.compile(rb'"generation_id": ?"([0-9a-f-]{36})"')
_COLUMNS = ("messages", "record", "cache", "time p50 / p95 / p99, ms", "statements", "messages kept", "prompt tokens")


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product() as product:
        [accounts] = product.make_accounts(Group(options.conversations))
        measured = _assembly(product, options.repetitions)
        uvloop.run(_talk_all(product.port, accounts, options))
        looked_up = _looked_up(product.port)
        described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    text = f"{report.described(described)}\n{_figures(measured, looked_up, options)}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "context")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks context", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer prompts and turns")
    parser.add_argument("--think", type=float, default=1.0, help="seconds between an answer and the next message, mean")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments and the turns")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args(arguments)
    options.repetitions, options.conversations, options.turns = (20, 10, 10) if options.quick else (200, 40, 20)
    return options


def _assembly(product: Product, repetitions: int) -> list[dict[str, Any]]:
    """Measure in a process that is nothing else than a worker's part."""
    command = [sys.executable, "-m", "tests.benchmarks.assembly", str(repetitions)]
    environment = {**os.environ, **product.stack.addresses}
    made = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    measured: list[dict[str, Any]] = json.loads(made.stdout)
    return measured


async def _talk_all(port: int, accounts: Sequence[Account], options: argparse.Namespace) -> None:
    chance = random.Random(options.seed)
    async with asyncio.TaskGroup() as group:
        for account in accounts:
            group.create_task(_talk(port, account, options, random.Random(chance.random())))


async def _talk(port: int, account: Account, options: argparse.Namespace, chance: random.Random) -> None:
    """Send messages, each after the answer to the one before; now and then ask for another answer first."""
    path = f"/v1/conversations/{account.conversation_id}/messages"
    for number in range(options.turns):
        content = f'@twin {{"stamp": true, "tokens": {TOKENS}, "token_ms": 20}}\nMessage {number}.'
        answer = await _answer(Request(port, path, {"content": content}, bearer=account.key), options, chance)
        if chance.random() < _REGENERATED_SHARE:
            generation = _GENERATION.search(answer.body)
            assert generation is not None
            again = f"/v1/messages/{generation[1].decode()}/regenerate"
            await _answer(Request(port, again, {}, bearer=account.key), options, chance)


async def _answer(request: Request, options: argparse.Namespace, chance: random.Random) -> Answer:
    due_ns = time.monotonic_ns() + int(chance.expovariate(1 / options.think) * 1e9)
    answer = await ask(request, due_ns=due_ns, timeout_seconds=60)
    assert answer.is_whole(TOKENS), answer.body[:300]
    return answer


def _looked_up(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        told = response.read().decode()
    counts = re.findall(r'^chat_context_cache_total\{result="(\w+)"\} ([0-9.]+)', told, re.MULTILINE)
    return {result: int(float(count)) for result, count in counts}


def _figures(measured: Sequence[dict[str, Any]], looked_up: dict[str, int], options: argparse.Namespace) -> str:
    total = sum(looked_up.values())
    hits = looked_up.get("hit", 0) / total if total else 0.0
    session = f"{options.conversations} conversations of {options.turns} turns, {options.think} s to think"
    notes = [
        f"- looked up in the cache: {total} ({', '.join(f'{name} {looked_up[name]}' for name in sorted(looked_up))})",
        f"- hit rate: {hits:.1%} ({session}; {_REGENERATED_SHARE:.0%} of the answers are asked for again)",
    ]
    return "\n".join([*notes, "", report.plain_table(_COLUMNS, [_row(each) for each in measured])])


def _row(measured: dict[str, Any]) -> list[str]:
    case = measured["case"]
    return [
        f"{case['messages']:,}",
        "yes" if case["has_record"] else "none",
        "on" if case["has_cache"] else "off",
        report.quantiles(Quantiles.of(measured["times_ms"])),
        str(max(measured["statements"])),
        str(measured["kept_messages"]),
        f"{measured['prompt_tokens']:,}",
    ]
