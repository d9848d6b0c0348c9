"""`kill -9` of each part, at a random moment of twenty answers: nothing acknowledged is lost, nothing is said twice."""

import asyncio
import os
import random
import time

import aiohttp
import psycopg
import pytest

from inference.testing.answers import expected_answer
from tests.api_client import ApiClient, text_of
from tests.books import mistakes_in_the_books
from tests.chaos.patient_client import read_answer
from tests.chaos.stack import PARTS, running_stack

ANSWERS = 20
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "3"))
SEED = int(os.environ.get("CHAOS_SEED", "20"))

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    home = tmp_path_factory.mktemp("chaos")
    with running_stack(home / "data", home / "log") as running:
        yield running


@pytest.fixture(scope="module")
def secret(stack):
    return stack.manage(
        "make_api_key", "chaos@example.com", "--tier", "enterprise", "--scopes", "chat,read,write"
    ).strip()


def question(number):
    return f'@twin {{"tokens": 300, "token_ms": 10}}\nQuestion {number}'


@pytest.mark.parametrize("part", PARTS)
async def test_killing_a_part_loses_nothing_and_repeats_nothing(stack, secret, part):
    dice = random.Random(f"{SEED}{part}")
    gaps = []
    for _ in range(ROUNDS):
        stack.wait_until_ready()
        gaps.append(await one_round(stack, secret, part, dice))
    print(f"{part}: longest silence of a reader, per round: {[round(gap, 1) for gap in gaps]} s")


async def one_round(stack, secret, part, dice):
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=2, sock_read=25)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        client = ApiClient(session, stack.url, secret)
        conversations = [await client.conversation() for _ in range(ANSWERS)]
        run = f"{part}-{time.time_ns()}"
        readers = [
            asyncio.create_task(read_answer(client, conversation_id, question(f"{run} {n}"), f"{run}-{n}"))
            for n, conversation_id in enumerate(conversations)
        ]
        await asyncio.sleep(dice.uniform(0.05, 3.5))
        await asyncio.to_thread(stack.kill, part)
        readings = await asyncio.gather(*readers)
    for n, reading in enumerate(readings):
        expected = expected_answer(question(f"{run} {n}"))
        assert text_of(reading.events) == expected, "what the reader saw"
        ids = [event.id for event in reading.events]
        assert ids == sorted(set(ids))
        assert reading.events[-1].data["finish_reason"] == "stop"
    await asyncio.to_thread(check_the_books, stack, conversations, readings)
    return max(reading.longest_gap_seconds for reading in readings)


def check_the_books(stack, conversations, readings):
    """Every acknowledged message is stored, once; every generation has ended; the ledger says the same to the token."""
    with psycopg.connect(stack.database()) as database:
        for conversation_id, reading in zip(conversations, readings, strict=True):
            start = reading.events[0].data
            rows = database.execute(
                "SELECT id::text, role, content, status FROM conversations_message"
                " WHERE conversation_id = %s ORDER BY id",
                [conversation_id],
            ).fetchall()
            assert [(row[0], row[1], row[3]) for row in rows] == [
                (start["user_message_id"], "user", "complete"),
                (start["message_id"], "assistant", "complete"),
            ]
            assert rows[1][2] == text_of(reading.events), "what is stored"
            (records,) = database.execute(
                "SELECT count(*) FROM accounts_usagerecord WHERE conversation_id = %s", [conversation_id]
            ).fetchone()
            assert records == 1
        (under_way,) = database.execute(
            "SELECT count(*) FROM conversations_generation WHERE status IN ('queued', 'running')"
        ).fetchone()
        assert under_way == 0
        assert mistakes_in_the_books(lambda sql: database.execute(sql).fetchall()) == {}
        (reserved, used) = database.execute("SELECT sum(reserved), sum(used) FROM accounts_tokenbudget").fetchone()
        (written,) = database.execute(
            "SELECT sum(tokens_in + tokens_out) FROM conversations_message WHERE role = 'assistant'"
        ).fetchone()
        assert (reserved, used) == (0, written)
