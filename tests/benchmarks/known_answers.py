"""`python -m tests.benchmarks known_answers`: what the answer cache saves where many ask the same."""

import argparse
import asyncio
import os
import random
import time
from collections.abc import Sequence
from itertools import accumulate

import uvloop

from tests.benchmarks import machine, report
from tests.benchmarks.client import Answer, Request, ask
from tests.benchmarks.figures import Quantiles
from tests.benchmarks.product import Account, Group, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
TOKENS = 40
TOKEN_MS = 25
PREFILL_MS = 200
_CONNECT_SECONDS = 0.2
_COLUMNS = ("answers", "count", "time to first token", "time to the end")


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product(ANSWER_CACHE_SECONDS="3600") as product:
        [accounts] = product.make_accounts(Group(options.count, priority_class="free"))
        questions = _questions(options)
        answers = uvloop.run(_ask_all(product.port, accounts, questions, options.rate))
        described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    text = f"{report.described(described)}\n{_figures(answers, questions)}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "known answers")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks known_answers", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many first messages are sent")
    parser.add_argument("--rate", type=float, default=10, help="messages a second")
    parser.add_argument("--questions", type=int, default=1000, help="different questions that there are")
    parser.add_argument(
        "--skew", type=float, default=1.0, help="of Zipf's law: the nth question has a share of 1/n^skew"
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the questions")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args(arguments)


def _questions(options: argparse.Namespace) -> list[int]:
    numbers = range(1, options.questions + 1)
    shares = list(accumulate(number**-options.skew for number in numbers))
    return random.Random(options.seed).choices(numbers, cum_weights=shares, k=options.count)


async def _ask_all(port: int, accounts: Sequence[Account], questions: Sequence[int], per_second: float) -> list[Answer]:
    first_ns = time.monotonic_ns() + int(2 * _CONNECT_SECONDS * 1e9)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number, (account, question) in enumerate(zip(accounts, questions, strict=True)):
            due_ns = first_ns + int(number / per_second * 1e9)
            await asyncio.sleep((due_ns - time.monotonic_ns()) / 1e9 - _CONNECT_SECONDS)
            request = _request(port, account, question)
            tasks.append(group.create_task(ask(request, due_ns=due_ns, timeout_seconds=60)))
    return [task.result() for task in tasks]


def _request(port: int, account: Account, question: int) -> Request:
    wishes = f'{{"stamp": true, "tokens": {TOKENS}, "token_ms": {TOKEN_MS}, "prefill_ms": {PREFILL_MS}}}'
    body = {"content": f"@twin {wishes}\nQuestion {question}", "options": {"temperature": 0}}
    return Request(port, f"/v1/conversations/{account.conversation_id}/messages", body, bearer=account.key)


def _is_known(answer: Answer) -> bool:
    """Its tokens are stamped with the moment at which they were written: for somebody else."""
    return answer.tokens()[0].sent_ns < answer.asked_ns


def _figures(answers: Sequence[Answer], questions: Sequence[int]) -> str:
    whole = [answer for answer in answers if answer.is_whole(TOKENS)]
    known = [answer for answer in whole if _is_known(answer)]
    written = [answer for answer in whole if not _is_known(answer)]
    notes = [
        f"- {len(questions)} first messages, {len(set(questions))} different ones; failed: {len(answers) - len(whole)}",
        f"- known: {len(known) / len(whole):.1%}; if each were written once only: "
        f"{1 - len(set(questions)) / len(questions):.1%}",
        f"- the model server needs {PREFILL_MS} ms to the first token, {PREFILL_MS + TOKENS * TOKEN_MS} ms to the end",
        "- p50 / p95 / p99 in milliseconds, from the request's sending",
    ]
    rows = [_row("written", written), _row("known", known)]
    return "\n".join([*notes, "", report.plain_table(_COLUMNS, rows)])


def _row(name: str, answers: Sequence[Answer]) -> list[str]:
    ends = Quantiles.of((answer.parts[-1][0] - answer.asked_ns) / 1e6 for answer in answers)
    return [
        name,
        str(len(answers)),
        report.quantiles(Quantiles.of(answer.first_token_ms() for answer in answers)),
        report.quantiles(ends),
    ]
