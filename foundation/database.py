"""The one way from async code to the ORM, and back with the connection given up."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection
from django.db.utils import InterfaceError, OperationalError

_LEAST_THREADS = 8
_threads = ThreadPoolExecutor(max_workers=_LEAST_THREADS, thread_name_prefix="database")
_REQUEST_THREADS = 64
"""More than there are connections: some requests wait for an end and give theirs back meanwhile."""
_request_threads = ThreadPoolExecutor(max_workers=_REQUEST_THREADS, thread_name_prefix="request")
_keeps_threads = ContextVar("keeps_threads", default=False)

DATABASE_UNREACHABLE = (OperationalError, InterfaceError)


async def in_database[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that uses the ORM in one of this process's few database threads.

    Its connection goes back to the pool (or stays for the thread's next call, where there is no pool) whatever happens.
    """
    # `sync_to_async` would do, at some 40 us more a call: it looks for much that is not here.
    call = partial(_with_a_connection, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, copy_context().run, call)


def keep_threads() -> None:
    """Have what this task gives to `in_request_thread` run in threads that many requests share."""
    _keeps_threads.set(True)


async def in_request_thread[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same for what a request does: however many wait for a thread here, the process's own work does not.

    Where no threads are kept for it, it runs in the request's own, as Django has it (in a test, in the test's).
    """
    if _keeps_threads.get():
        run = sync_to_async(_with_a_connection, thread_sensitive=False, executor=_request_threads)
    else:
        run = sync_to_async(_with_a_connection)
    return await run(function, *args, **kwargs)


def _with_a_connection[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    if not connection.in_atomic_block:
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
