import pytest

from tests.inference.conformance.raw_http import get, post


@pytest.fixture(autouse=True)
def locked(twin):
    twin.change(api_key="Secret")


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Secret"}])
async def test_without_the_key_the_answer_is_an_empty_401(twin, headers):
    response = await post(twin.url, "/generate", {"inputs": "x"}, headers)
    assert (response.status, response.body) == (401, b"")
    assert not twin.records


async def test_a_key_is_compared_without_case(twin):
    assert (await post(twin.url, "/generate", {"inputs": "x"}, {"authorization": "bearer SECRET"})).status == 200


@pytest.mark.parametrize("path", ["/", "/health", "/info", "/metrics", "/v1/models"])
async def test_facts_need_no_key(twin, path):
    assert (await get(twin.url, path)).status == 200


async def test_chat_tokenize_needs_no_key_and_tokenize_does(twin):
    messages = [{"role": "user", "content": "x"}]
    assert (await post(twin.url, "/chat_tokenize", {"messages": messages})).status == 200
    assert (await post(twin.url, "/tokenize", {"inputs": "x"})).status == 401
