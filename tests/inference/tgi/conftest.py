import pytest

from inference.tgi.client import model_session


@pytest.fixture
async def session():
    async with model_session() as session:
        yield session
