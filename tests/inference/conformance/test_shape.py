from itertools import pairwise

import pytest

from tests.inference.conformance.raw_http import connect

INFO_KEYS = [
    "model_id", "model_sha", "model_pipeline_tag", "max_concurrent_requests", "max_best_of", "max_stop_sequences",
    "max_input_tokens", "max_total_tokens", "validation_workers", "max_client_batch_size", "router", "version", "sha",
    "docker_label",
]  # fmt: skip


async def test_info_has_its_keys_in_their_order(target):
    assert list(await target.info()) == INFO_KEYS


async def test_info_names_limits_that_fit_each_other(target):
    info = await target.info()
    assert 0 < info["max_input_tokens"] < info["max_total_tokens"]
    assert info["router"] == "text-generation-router"


@pytest.mark.parametrize("path", ["/", "/health", "/ping"])
async def test_health_is_an_empty_200(target, path):
    response = await target.get(path)
    assert (response.status, response.body) == (200, b"")


async def test_models_lists_the_one_model(target):
    model_id = (await target.info())["model_id"]
    expected = {"id": model_id, "object": "model", "created": 0, "owned_by": model_id}
    assert (await target.get("/v1/models")).json() == {"object": "list", "data": [expected]}


async def test_tokenize_gives_byte_offsets(target):
    text = "Grüße an 我们, zwei"
    tokens = (await target.post("/tokenize", {"inputs": text})).json()
    shown = [token for token in tokens if token["stop"]]
    assert all(set(token) == {"id", "text", "start", "stop"} for token in tokens)
    assert shown[0]["start"] == 0
    assert shown[-1]["stop"] == len(text.encode())
    assert all(before["stop"] >= after["start"] for before, after in pairwise(shown))


async def test_chat_tokenize_renders_the_template(target):
    answer = (await target.post("/chat_tokenize", {"messages": [{"role": "user", "content": "Hello there"}]})).json()
    assert set(answer) == {"tokenize_response", "templated_text"}
    assert "Hello there" in answer["templated_text"]
    assert answer["tokenize_response"]


async def test_chat_tokenize_leaves_a_last_assistant_message_open(target):
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day, "}]
    text = (await target.post("/chat_tokenize", {"messages": messages})).json()["templated_text"]
    assert text.endswith("Good day,")


async def test_metrics_has_the_three_gauges_after_a_request(target):
    await target.generate(target.brief, max_new_tokens=1)
    load = await target.load()
    assert {"tgi_queue_size", "tgi_batch_current_size", "tgi_batch_current_max_tokens"} <= set(load)
    assert load["tgi_request_count"] >= 1


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/generate", 405)])
async def test_an_unknown_path_or_method_has_an_empty_body(target, method, path, status):
    connection = await connect(target.url, method, path)
    response = await connection.read_all()
    await connection.close()
    assert (response.status, response.body) == (status, b"")
