"""Connections to Redis, and the names of its keys."""

from functools import lru_cache

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

REDIS_UNREACHABLE = (redis.RedisError, OSError)
"""What a command raises while Redis is away, or there but of no use: full, read-only, loading, unable to save.

Every caller has a way on without it."""

_DRIVER = DriverInfo()
"""Who we are to Redis. redis-py would search the installed packages for it at each connection: 2 ms."""


def key(version: int, *parts: object) -> str:
    """Return a key: the site's prefix, the version of what is stored under it, and its name."""
    return ":".join([settings.REDIS_KEY_PREFIX, str(version), *map(str, parts)])


def connect() -> redis.Redis:
    """Open a pool for synchronous code. A call that fails is not repeated: the callers know better."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=2,
        socket_connect_timeout=2,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=30,
        driver_info=_DRIVER,
    )


@lru_cache(maxsize=1)
def shared_client() -> redis.Redis:
    """Return this process's pool for synchronous code; any thread may use it."""
    return connect()


def connect_async() -> "redis.asyncio.Redis":
    """Open a pool for the running event loop; its owner closes it with `aclose()`.

    redis-py closes a connection whose command was cancelled before the reply was read; it is never reused.
    """
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=5,
        socket_connect_timeout=2,
        retry=AsyncRetry(NoBackoff(), 0),
        health_check_interval=30,
        driver_info=_DRIVER,
    )
