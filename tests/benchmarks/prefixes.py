"""`python -m tests.benchmarks prefixes`: how many prompt tokens the local model really reads in a long conversation.

The same turns go through the product, which drops in blocks, and straight to the model server by a client that drops
the oldest exchange whenever the prompt no longer fits, as simple clients do.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import aiohttp
import uvloop

from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.tgi.client import TGIClient
from tests.benchmarks import machine, report
from tests.benchmarks.client import Request, ask
from tests.benchmarks.product import Account, Group, Product, running_product
from tests.own_processes import ROOT, free_port

DOCUMENT = ROOT / "docs" / "performance.md"
SYSTEM = "You are a helpful assistant. Answer clearly and briefly."
_QUESTION = "Question {number}: what should I know about the number {number} of our list, and why does it matter to us?"
_TURN_SECONDS = 300
_TOKENS_READ = """
SELECT message.tokens_in, message.tokens_cached, message.content FROM conversations_message message
WHERE message.conversation_id = %s AND message.role = 'assistant' ORDER BY message.id
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """The prompt's tokens, and how many of them the server had in its cache."""

    tokens: int
    cached: int


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with (
        _local_model(options.window) as url,
        running_product(
            MODEL_FLEET=f"small={url}#permits=2", MAX_ANSWER_TOKENS=str(options.answer), SYSTEM_INSTRUCTIONS=SYSTEM
        ) as product,
    ):
        [[account]] = product.make_accounts(Group(1, users=1))
        uvloop.run(_talk(product, account, options.turns))
        rows = product.query(_TOKENS_READ, account.conversation_id)
    ours = [Turn(tokens, cached) for tokens, cached, _ in rows]
    with _local_model(options.window) as url:  # another one: it must not know the prompts from before
        simple = uvloop.run(_drop_the_oldest(url, options, [content for *_, content in rows]))
    described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    text = f"{report.described(described)}\n{_figures(ours, simple, options)}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "prefixes")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks prefixes", description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", type=int, default=1024, help="the model's window in tokens")
    parser.add_argument("--answer", type=int, default=40, help="tokens of an answer at most")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args(arguments)


@contextmanager
def _local_model(window_tokens: int) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "inference.local_server", "--model", "small", "--port", str(port)]
    command += ["--window-tokens", str(window_tokens)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            assert any("serving" in line for line in server.stdout), "the local model server ended instead of serving"
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


async def _talk(product: Product, account: Account, turns: int) -> None:
    path = f"/v1/conversations/{account.conversation_id}/messages"
    for number in range(1, turns + 1):
        body: dict[str, object] = {"content": _QUESTION.format(number=number), "options": {"temperature": 0}}
        request = Request(product.port, path, body, bearer=account.key)
        answer = await ask(request, due_ns=time.monotonic_ns(), timeout_seconds=_TURN_SECONDS)
        assert b'"type":"done"' in answer.body, answer.body[-500:]


async def _drop_the_oldest(url: str, options: argparse.Namespace, answers: Sequence[str]) -> list[Turn]:
    """Send the same turns with the answers that were given, dropping as few of the oldest exchanges as possible."""
    turns: list[Turn] = []
    async with aiohttp.ClientSession() as session:
        server = TGIClient(url, session=session)
        history: list[ChatMessage] = []
        for number, answer in zip(count(1), answers, strict=False):
            history.append(ChatMessage("user", _QUESTION.format(number=number)))
            while await server.count_tokens(_prompt(history)) > options.window - options.answer:
                del history[:2]
            turns.append(await _read(server, _prompt(history)))
            history.append(ChatMessage("assistant", answer))
    return turns


def _prompt(history: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    return (ChatMessage("system", SYSTEM), *history)


async def _read(server: TGIClient, prompt: tuple[ChatMessage, ...]) -> Turn:
    request = ChatRequest(prompt, SamplingOptions(max_new_tokens=2, temperature=0), request_id="prefixes")
    *_, finished = [event async for event in server.stream_chat(request)]
    return Turn(finished.tokens_in or 0, finished.tokens_cached or 0)


def _figures(ours: Sequence[Turn], simple: Sequence[Turn], options: argparse.Namespace) -> str:
    columns = ("what is dropped", "turns", "window", "prompt tokens", "evaluated", "cached", "evaluated per turn")
    rows = [_row("blocks, down to 70%", ours, options), _row("the oldest exchange", simple, options)]
    return report.plain_table(columns, rows)


def _row(name: str, turns: Sequence[Turn], options: argparse.Namespace) -> list[str]:
    tokens, cached = sum(turn.tokens for turn in turns), sum(turn.cached for turn in turns)
    evaluated = tokens - cached
    share = f"{cached / tokens:.1%}"
    per_turn = f"{evaluated / len(turns):.0f}"
    return [name, str(len(turns)), str(options.window), f"{tokens:,}", f"{evaluated:,}", share, per_turn]
