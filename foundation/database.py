"""The one way from async code to the ORM, and back with the connection given up."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection
from django.db.utils import InterfaceError, OperationalError

_threads = ThreadPoolExecutor(max_workers=min(8, 2 + (os.cpu_count() or 2)), thread_name_prefix="database")

DATABASE_UNREACHABLE = (OperationalError, InterfaceError)


async def in_database[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that uses the ORM in one of this process's few database threads.

    Its connection goes back to the pool (or stays for the thread's next call, where there is no pool) whatever happens.
    """
    return await sync_to_async(_with_a_connection, thread_sensitive=False, executor=_threads)(function, *args, **kwargs)


def _with_a_connection[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        give_connection_back()


def give_connection_back() -> None:
    """End this thread's use of its connection; inside a transaction (a test's) it does nothing."""
    if connection.in_atomic_block:
        return
    if connection.settings_dict["OPTIONS"].get("pool"):
        connection.close()
    else:
        close_old_connections()
