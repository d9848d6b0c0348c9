import asyncio

import pytest

from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import chat, story
from tests.inference.local_server.conftest import serve

pytestmark = pytest.mark.real_model

STEP_SECONDS = 10.0
"""What one step of the engine may take on a machine that is busy with other tests."""


async def test_when_all_permits_are_used_each_route_says_so_in_its_way(running):
    with serve(running, max_concurrent_requests=1) as server:
        holder = await raw_http.open_post(server.url, "/generate_stream", story())
        await holder.read_head()
        await holder.read_events(1)
        overloaded = {"error": "Model is overloaded", "error_type": "overloaded"}
        whole = await raw_http.post(server.url, "/generate", story())
        stream = await raw_http.post(server.url, "/generate_stream", story())
        talk = await raw_http.post(server.url, "/v1/chat/completions", chat("Hi", stream=True))
        await holder.close()
    assert (whole.status, whole.json()) == (429, overloaded)
    assert "retry-after" not in whole.headers
    assert (stream.status, stream.frames()) == (200, [overloaded])
    assert talk.frames() == [{"error": {"message": "Model is overloaded", "http_status_code": 422}}]
    assert talk.events()[-1] == "[DONE]"


async def test_a_permit_is_free_again_when_its_client_leaves(running):
    with serve(running, max_concurrent_requests=1) as server:
        for _ in range(3):
            holder = await raw_http.open_post(server.url, "/generate_stream", story())
            await holder.read_head()
            await holder.read_events(1)
            await holder.close()
            await _until_gauge(server, "tgi_batch_current_size", 0)
        assert (await raw_http.post(server.url, "/generate", story(max_new_tokens=1))).status == 200


@pytest.mark.parametrize("path", ["/generate_stream", "/generate"])
async def test_a_client_that_leaves_frees_the_slot_while_text_is_written(server, path):
    await server.until(server.is_idle, STEP_SECONDS)
    connection = await raw_http.open_post(server.url, path, story())
    await server.until(lambda: not server.is_idle(), STEP_SECONDS)
    await connection.close()
    await server.until(server.is_idle, STEP_SECONDS)
    assert await server.gauge("tgi_batch_current_size") == 0


@pytest.mark.parametrize("path", ["/generate_stream", "/generate"])
async def test_a_client_that_leaves_frees_the_slot_while_the_prompt_is_read(server, path):
    body = {"inputs": f"{path} " + "The fox runs over the hill. " * 250}  # some 1,750 tokens
    await server.until(server.is_idle, STEP_SECONDS)
    connection = await raw_http.open_post(server.url, path, body)
    await server.until(lambda: not server.is_idle(), STEP_SECONDS)
    await connection.close()
    await server.until(server.is_idle, STEP_SECONDS)
    slot = max(server.slots(), key=lambda slot: slot["id_task"])
    assert slot["n_prompt_tokens"] < 1000, "the prompt was read on for nobody"


async def test_a_client_that_leaves_the_queue_is_forgotten_at_once(server):
    await server.until(server.is_idle, STEP_SECONDS)
    running = [await raw_http.open_post(server.url, "/generate_stream", story()) for _ in range(2)]
    for connection in running:
        await connection.read_head()
        await connection.read_events(1)
    waiting = await raw_http.open_post(server.url, "/generate_stream", story())
    await waiting.read_head()
    await _until_gauge(server, "tgi_queue_size", 1)
    await waiting.close()
    await _until_gauge(server, "tgi_queue_size", 0)
    assert await server.gauge("tgi_batch_current_size") == 2
    for connection in running:
        await connection.close()
    await server.until(server.is_idle, STEP_SECONDS)


async def test_a_request_waits_for_a_seat_and_is_then_answered(running):
    with serve(running, parallel=1) as server:
        first = await raw_http.open_post(server.url, "/generate_stream", story(max_new_tokens=20))
        second = await raw_http.open_post(server.url, "/generate_stream", story(max_new_tokens=2))
        await _until_gauge(server, "tgi_queue_size", 1)
        answers = [await connection.read_all() for connection in (first, second)]
        for connection in (first, second):
            await connection.close()
    assert [len(answer.frames()) for answer in answers] == [20, 2]


async def test_a_waiting_stream_is_kept_alive_with_comments(running):
    with serve(running, parallel=1, keep_alive_seconds=0.2) as server:
        holder = await raw_http.open_post(server.url, "/generate_stream", story())
        await holder.read_head()
        await holder.read_events(1)
        waiting = await raw_http.open_post(server.url, "/generate_stream", story(max_new_tokens=2))
        assert (await waiting.read_head()).status == 200
        comments = [await waiting.read_chunk() for _ in range(3)]
        await holder.close()
        response = await waiting.read_all()
        await waiting.close()
    assert comments == [b":\n\n"] * 3
    assert [frame["index"] for frame in response.frames()] == [1, 2]


async def test_the_metrics_tell_what_happened(running):
    with serve(running) as server:
        await raw_http.post(server.url, "/generate", story(max_new_tokens=2))
        await raw_http.post(server.url, "/generate", {"inputs": ""})
        left = await raw_http.open_post(server.url, "/generate_stream", story())
        await left.read_head()
        await left.read_events(1)
        await left.close()
        await _until_gauge(server, 'tgi_request_failure{err="dropped"}', 1)
        assert await server.gauge('tgi_request_failure{err="validation"}') == 1
        assert await server.gauge("tgi_request_count") == 3
        assert await server.gauge("tgi_request_success") == 1
        assert await server.gauge("tgi_request_generated_tokens_sum") == 2
        assert await server.gauge("tgi_batch_current_max_tokens") == 0


async def _until_gauge(server, name: str, value: float) -> None:
    async with asyncio.timeout(STEP_SECONDS):
        while await server.gauge(name) != value:
            pass
