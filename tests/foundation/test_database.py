"""Database work of coroutines runs in a few threads, each of which gives its connection back."""

import asyncio
import threading

import psycopg
import pytest
from django.db import OperationalError, connection

from conversations.models import Conversation
from foundation.database import in_database
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def backend():
    """Return the process number of the PostgreSQL server that serves this thread."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


async def test_the_result_comes_back_and_what_was_written_is_seen():
    user = await in_database(make_user)
    made = await in_database(lambda: Conversation.objects.create(user=user, title="here"))
    assert await in_database(lambda: Conversation.objects.get(pk=made.pk).title) == "here"


async def test_an_error_comes_back_and_the_connection_is_still_of_use():
    def fail():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1/0")

    for _ in range(10):
        with pytest.raises(Exception, match="division by zero"):
            await in_database(fail)
    assert await in_database(backend) > 0


async def test_many_calls_at_once_share_few_connections():
    backends = await asyncio.gather(*(in_database(backend) for _ in range(50)))
    assert 1 <= len(set(backends)) <= 8


async def test_the_event_loop_goes_on_meanwhile():
    begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait():
        loop.call_soon_threadsafe(begun.set)
        return may_end.wait(10)

    working = asyncio.create_task(in_database(wait))
    async with asyncio.timeout(10):
        await begun.wait()
    may_end.set()
    assert await working is True


async def test_a_connection_that_the_server_closed_is_replaced():
    def lose():
        pid = backend()
        with psycopg.connect(**_parameters(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [pid])
        backend()

    with pytest.raises(OperationalError):
        await in_database(lose)
    assert all(await asyncio.gather(*(in_database(backend) for _ in range(20))))


def _parameters():
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}


async def test_no_transaction_is_left_open():
    await asyncio.gather(*(in_database(backend) for _ in range(20)))

    def idle_in_transaction():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%%' AND pid <> pg_backend_pid()"
            )
            return cursor.fetchone()[0]

    assert await in_database(idle_in_transaction) == 0


async def test_a_caller_that_is_cancelled_leaves_the_connection_in_order():
    begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow():
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(10)
        return backend()

    working = asyncio.create_task(in_database(slow))
    async with asyncio.timeout(10):
        await begun.wait()
    working.cancel()
    may_end.set()
    await asyncio.wait([working])
    assert all(await asyncio.gather(*(in_database(backend) for _ in range(20))))
