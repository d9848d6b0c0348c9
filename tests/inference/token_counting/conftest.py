import pytest

from inference.tgi.client import model_session
from tests.inference.token_counting.tokenizers import train


@pytest.fixture
async def session():
    async with model_session() as session:
        yield session


@pytest.fixture(scope="session")
def tokenizer():
    return train()


@pytest.fixture
def tokenizer_file(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return path
