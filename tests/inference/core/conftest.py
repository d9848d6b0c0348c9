"""Connections to Redis, and a Redis of a test's own."""

import pytest
import pytest_asyncio

from foundation.redis import connect, connect_async, shared_client
from inference.publisher import Publisher
from tests.inference.core.stores import OwnValkey

KEEP_SECONDS = 600


@pytest_asyncio.fixture
async def client():
    """The worker's connections to the Redis of the tests."""
    async with connect_async() as client:
        yield client


@pytest.fixture
def sync_client():
    with connect() as client:
        yield client


@pytest_asyncio.fixture
async def publisher(client):
    async with Publisher(client, KEEP_SECONDS) as publisher:
        yield publisher


@pytest.fixture
def own_valkey(settings):
    """A Redis that the whole product uses during this test, and that the test may harm."""
    valkey = OwnValkey()
    valkey.start()
    settings.REDIS_URL = valkey.url
    shared_client.cache_clear()
    yield valkey
    shared_client().close()
    shared_client.cache_clear()
    valkey.remove()
