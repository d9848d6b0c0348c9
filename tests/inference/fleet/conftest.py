import pytest

from foundation.redis import connect, connect_async


@pytest.fixture
async def client():
    async with connect_async() as client:
        yield client


@pytest.fixture
def sync_client():
    with connect() as client:
        yield client
