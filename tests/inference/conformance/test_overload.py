import asyncio

import pytest

from tests.inference.conformance.target import chat_body


@pytest.fixture
async def crowd(target):
    """Streams that hold every permit."""
    if target.permits is None:
        pytest.skip("a server of others is not to be filled")
    await target.until_idle()
    body = chat_body(target.endless, max_tokens=1_000)
    connections = await asyncio.gather(*(target.open("/v1/chat/completions", body) for _ in range(target.permits)))
    yield connections
    for connection in connections:
        await connection.close()
    await target.until_idle()


async def test_a_document_is_refused_with_429(target, crowd):
    response = await target.post("/generate", {"inputs": "x"})
    assert response.status == 429
    assert response.json() == {"error": "Model is overloaded", "error_type": "overloaded"}
    assert "retry-after" not in response.headers


async def test_a_stream_says_200_and_is_refused_in_its_first_frame(target, crowd):
    response = await target.post("/generate_stream", {"inputs": "x"})
    assert response.status == 200
    assert response.frames() == [{"error": "Model is overloaded", "error_type": "overloaded"}]
    assert response.ended == "complete"


async def test_a_chat_stream_claims_422_and_ends_with_done(target, crowd):
    response = await target.chat(target.brief, stream=True)
    assert response.status == 200
    assert response.frames() == [{"error": {"message": "Model is overloaded", "http_status_code": 422}}]
    assert response.events()[-1] == "[DONE]"


async def test_a_permit_is_taken_before_the_values_are_looked_at(target, crowd):
    response = await target.post("/generate", {"inputs": "", "parameters": {"temperature": 0.0}})
    assert response.json()["error_type"] == "overloaded"


async def test_tokenize_needs_no_permit(target, crowd):
    assert (await target.post("/tokenize", {"inputs": "x"})).status == 200


async def test_one_who_leaves_makes_room(target, crowd):
    await crowd[0].close()
    async with asyncio.timeout(20):
        while target.permits <= (load := await target.load())["tgi_queue_size"] + load["tgi_batch_current_size"]:
            pass
    heir = await target.open("/v1/chat/completions", chat_body(target.brief, max_tokens=1))
    for connection in crowd[1:]:
        await connection.close()
    assert (await heir.read_all()).frames()[0]["choices"]
    await heir.close()
