"""`python -m tests.benchmarks warmth`: how many follow-ups reach the replica that holds the conversation so far."""

import argparse
import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import uvloop

from inference.testing.settings import TwinSettings
from tests.benchmarks import machine, report
from tests.benchmarks.client import Answer, Request, ask
from tests.benchmarks.product import Account, Group, Product, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
REPLICAS = 3
PERMITS = 64
TOKENS = 20
TOKEN_MS = 20
_PROMPT_CHARACTERS = 1200
_REPLICAS_IN_ORDER = """
SELECT conversation_id::text, array_agg(replica ORDER BY message_id) FROM conversations_generation GROUP BY 1
"""


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product([TwinSettings(permits=2 * PERMITS)] * REPLICAS, permits=PERMITS) as product:
        [accounts] = product.make_accounts(Group(options.conversations))
        with product.another_worker():
            answers = uvloop.run(_talk_all(product.port, accounts, options))
        described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
        figures = _figures(product, answers)
    text = f"{report.described(described)}\n{figures}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "warmth")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks warmth", description=__doc__)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--turns", type=int, default=6, help="messages in each")
    parser.add_argument("--think", type=float, default=10, help="seconds between an answer and the next message, mean")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args(arguments)


async def _talk_all(port: int, accounts: Sequence[Account], options: argparse.Namespace) -> list[Answer]:
    chance = random.Random(options.seed)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for account in accounts:
            pauses = [chance.expovariate(1 / options.think) for _ in range(options.turns)]
            tasks.append(group.create_task(_talk(port, account, pauses)))
    return [answer for task in tasks for answer in task.result()]


async def _talk(port: int, account: Account, pauses: Sequence[float]) -> list[Answer]:
    answers = []
    for number, pause in enumerate(pauses):
        wishes = f'{{"stamp": true, "tokens": {TOKENS}, "token_ms": {TOKEN_MS}}}'
        words = f"Message {number} of {account.conversation_id}. "
        content = f"@twin {wishes}\n{words * (_PROMPT_CHARACTERS // len(words))}"
        path = f"/v1/conversations/{account.conversation_id}/messages"
        request = Request(port, path, {"content": content}, bearer=account.key)
        due_ns = time.monotonic_ns() + int(pause * 1e9)
        answers.append(await ask(request, due_ns=due_ns, timeout_seconds=60))
    return answers


def _figures(product: Product, answers: Sequence[Answer]) -> str:
    routes = [replicas for _, replicas in product.query(_REPLICAS_IN_ORDER)]
    steps = [step for replicas in routes for step in pairwise(replicas)]
    warm = sum(before == after for before, after in steps)
    spread = sorted(Counter(replica for replicas in routes for replica in replicas).values())
    failed = sum(not answer.is_whole(TOKENS) for answer in answers)
    columns = ("replicas", "workers", "conversations", "answers", "failed", "follow-ups", "warm", "answers by replica")
    row = [REPLICAS, 2, len(routes), len(answers), failed, len(steps), f"{warm / len(steps):.1%}", _list(spread)]
    return report.plain_table(columns, [[str(cell) for cell in row]])


def _list(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
