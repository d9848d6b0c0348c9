"""How the web process's pool of database connections gets over an outage."""

from typing import Any

from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool


def check_connection(connection: Connection[Any]) -> None:
    """Raise if the connection is dead, and replace all that lie in the pool: an outage has killed them together.

    Checked one by one, with psycopg_pool's growing pauses between them, they would outlast the caller's patience.
    """
    try:
        ConnectionPool.check_connection(connection)
    except OperationalError:
        pool = connection._pool
        if isinstance(pool, ConnectionPool):
            pool.drain()
        raise
