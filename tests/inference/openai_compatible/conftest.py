import pytest

from inference.tgi.client import model_session


@pytest.fixture(autouse=True)
def _empty_redis():
    """A model server's client knows no store, so these tests need none."""


@pytest.fixture
async def session():
    async with model_session() as session:
        yield session
