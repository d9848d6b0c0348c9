"""Whether a connection lives is told without asking the server, and told right."""

import psycopg
import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from foundation.pool import check_connection, is_silent
from tests.running_site import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def parameters():
    given = connection.get_connection_params()
    return {name: given[name] for name in ("dbname", "user", "password", "host", "port") if given.get(name)}


@pytest.fixture
def one():
    with psycopg.connect(**parameters(), autocommit=True) as one:
        yield one


def end(other):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [other.info.backend_pid])


def test_an_idle_connection_is_silent(one):
    assert is_silent(one)
    one.execute("SELECT 1")
    assert is_silent(one)


def test_one_that_the_server_has_ended_is_not(one):
    end(one)
    wait_until(lambda: not is_silent(one), what="the server's farewell")


def test_one_that_is_closed_is_not(one):
    one.close()
    assert not is_silent(one)


def test_one_to_which_the_server_has_only_said_something_is_kept(one):
    one.execute("LISTEN news")
    with connection.cursor() as cursor:
        cursor.execute("NOTIFY news")
    wait_until(lambda: not is_silent(one), what="the notification")
    check_connection(one)
    assert is_silent(one)


def test_connections_of_a_pool_that_were_ended_together_are_replaced():
    with ConnectionPool(
        kwargs={**parameters(), "autocommit": True}, min_size=3, max_size=3, check=check_connection, open=True
    ) as pool:
        pool.wait()
        held = [pool.getconn() for _ in range(3)]
        for each in held:
            end(each)
            wait_until(lambda each=each: not is_silent(each), what="the server's farewell")
            pool.putconn(each)
        with pool.connection(timeout=10) as taken:
            assert taken.execute("SELECT 1").fetchone() == (1,)
