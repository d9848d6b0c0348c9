"""How connections to the database get over an outage."""

import select
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.pq import ConnStatus
from psycopg_pool import ConnectionPool


def is_silent(connection: Connection[Any]) -> bool:
    """Say whether an idle connection is open and its server has sent nothing: neither a farewell nor the end.

    A server that stops, and a connection that is ended there, are noticed by it without asking the server.
    """
    if connection.closed or connection.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


def check_connection(connection: Connection[Any]) -> None:
    """Raise if the connection is dead, and replace all that lie in the pool: an outage has killed them together.

    Checked one by one, with psycopg_pool's growing pauses between them, they would outlast the caller's patience.
    """
    if is_silent(connection):
        return
    try:
        ConnectionPool.check_connection(connection)
    except OperationalError:
        pool = connection._pool
        if isinstance(pool, ConnectionPool):
            pool.drain()
        raise
