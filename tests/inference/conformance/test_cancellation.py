import asyncio

import pytest

from tests.inference.conformance.target import chat_body


@pytest.fixture(autouse=True)
async def idle(target):
    async with asyncio.timeout(60):
        await target.until_idle()


async def is_idle_soon(target) -> None:
    async with asyncio.timeout(10):
        await target.until_idle()


@pytest.mark.parametrize("path", ["/generate_stream", "/v1/chat/completions", "/v1/completions"])
async def test_a_reader_who_leaves_frees_the_slot(target, path):
    prompt = await target.prompt(target.endless)
    bodies = {
        "/generate_stream": {"inputs": prompt, "parameters": {"max_new_tokens": 1_000}},
        "/v1/chat/completions": chat_body(target.endless, max_tokens=1_000),
        "/v1/completions": {"prompt": prompt, "stream": True, "max_tokens": 1_000, "temperature": 0},
    }
    connection = await target.open(path, bodies[path])
    await connection.read_events(3)
    assert (await target.load())["tgi_batch_current_size"] == 1
    await connection.close()
    await is_idle_soon(target)


async def test_a_document_nobody_waits_for_frees_the_slot(target):
    prompt = await target.prompt(target.endless)
    before = (await target.load()).get("tgi_request_count", 0)
    streaming = await target.open("/generate_stream", {"inputs": prompt, "parameters": {"max_new_tokens": 1_000}})
    waiting = asyncio.create_task(target.post("/generate", {"inputs": prompt, "parameters": {"max_new_tokens": 1_000}}))
    async with asyncio.timeout(30):
        while (await target.load())["tgi_batch_current_size"] < 2:
            pass
    waiting.cancel()
    await asyncio.wait([waiting])
    await streaming.close()
    await is_idle_soon(target)
    assert (await target.load())["tgi_request_count"] > before


async def test_one_who_leaves_during_prefill_frees_the_slot(target):
    long = "A long story. " * 250 + target.endless
    if target.is_twin:
        long = '@twin {"prefill_ms": 60000}'
    connection = await target.open("/v1/chat/completions", chat_body(long, max_tokens=1_000))
    await connection.close()
    await is_idle_soon(target)


async def test_one_who_leaves_does_not_disturb_the_others(target):
    alone = await target.generate(target.endless, path="/generate_stream", max_new_tokens=24)
    leaver = await target.open("/v1/chat/completions", chat_body(target.endless, max_tokens=1_000))
    await leaver.read_events(1)
    staying = asyncio.create_task(target.generate(target.endless, path="/generate_stream", max_new_tokens=24))
    await leaver.read_events(4)
    await leaver.close()
    response = await staying
    assert [frame["index"] for frame in response.frames()] == list(range(1, 25))
    if target.is_twin:
        assert response.frames() == alone.frames()


async def test_one_who_leaves_the_queue_is_skipped(target):
    if target.permits is None:
        pytest.skip("the queue of others is not to be filled")
    body = chat_body(target.endless, max_tokens=1_000)
    running = [await target.open("/v1/chat/completions", body) for _ in range(2)]
    for connection in running:
        await connection.read_events(1)
    queued = await target.open("/v1/chat/completions", body)
    async with asyncio.timeout(10):
        while (await target.load())["tgi_queue_size"] < 1:
            pass
    await queued.close()
    for connection in running:
        await connection.close()
    await is_idle_soon(target)
    assert contents_of(await target.chat(target.brief, max_tokens=4))


def contents_of(response) -> str:
    return response.json()["choices"][0]["message"]["content"]
