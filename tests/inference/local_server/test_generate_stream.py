import re

import pytest

from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import dictated, story

pytestmark = pytest.mark.real_model

SPLIT_CHARACTER = "𓀀"  # three tokens of this model's vocabulary
EVENT = re.compile(rb"data: \{.*\}\n\n")


async def test_each_chunk_is_one_event_and_the_indexes_have_no_gap(server):
    response = await raw_http.post(server.url, "/generate_stream", story(max_new_tokens=8))
    assert response.ended == "complete"
    assert all(EVENT.fullmatch(chunk) for chunk in response.chunks)
    assert [frame["index"] for frame in response.frames()] == list(range(1, 9))
    assert b"[DONE]" not in response.body


async def test_the_keys_stand_in_the_order_of_the_protocol(server):
    response = await raw_http.post(server.url, "/generate_stream", dictated("Hi"))
    first, *_, last = response.frames()
    assert list(first) == ["index", "token", "generated_text", "details"]
    assert list(first["token"]) == ["id", "text", "logprob", "special"]
    assert first["generated_text"] is None
    assert first["details"] is None
    assert list(last["details"]) == ["finish_reason", "generated_tokens", "seed", "input_length"]
    assert last["token"]["special"] is True
    assert last["generated_text"] == "Hi"


async def test_a_stream_has_no_timing_headers(server):
    response = await raw_http.post(server.url, "/generate_stream", story(max_new_tokens=1))
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["x-compute-type"] == "cpu"
    assert response.headers["transfer-encoding"] == "chunked"
    assert "x-total-time" not in response.headers
    assert "x-prompt-tokens" not in response.headers


@pytest.mark.parametrize(
    "text",
    ["🦔 and 👩‍🚀𓀀!", "漢字かな交じり", "a\u2028b\u0085c", "data: [DONE] is text", "one\n\ntwo\n", "naïve — “quoted”"],
)
async def test_any_text_passes_unchanged(server, text):
    response = await raw_http.post(server.url, "/generate_stream", dictated(text))
    frames = response.frames()
    texts = [frame["token"]["text"] for frame in frames if not frame["token"]["special"]]
    assert "".join(texts) == text
    assert frames[-1]["generated_text"] == text
    assert "\ufffd" not in response.text


async def test_the_tokens_of_an_unfinished_character_have_an_empty_text(server):
    frames = (await raw_http.post(server.url, "/generate_stream", dictated(SPLIT_CHARACTER))).frames()
    assert [frame["token"]["text"] for frame in frames] == ["", "", SPLIT_CHARACTER, "<|im_end|>"]
    assert [frame["index"] for frame in frames] == [1, 2, 3, 4]
    assert frames[-1]["details"]["generated_tokens"] == 4
    tokens = (await raw_http.post(server.url, "/tokenize", {"inputs": SPLIT_CHARACTER})).json()
    assert [frame["token"]["id"] for frame in frames[:3]] == [token["id"] for token in tokens]


async def test_an_answer_cut_inside_a_character_still_counts_its_tokens(server):
    body = dictated(SPLIT_CHARACTER, max_new_tokens=2)
    frames = (await raw_http.post(server.url, "/generate_stream", body)).frames()
    assert [frame["token"]["text"] for frame in frames] == ["", ""]
    assert frames[-1]["details"]["finish_reason"] == "length"
    assert frames[-1]["details"]["generated_tokens"] == 2


async def test_the_root_streams_when_asked(server):
    response = await raw_http.post(server.url, "/", story(max_new_tokens=2) | {"stream": True})
    assert len(response.frames()) == 2


async def test_the_likeliest_tokens_are_shown_when_asked(server):
    frames = (await raw_http.post(server.url, "/generate_stream", story(max_new_tokens=2, top_n_tokens=3))).frames()
    assert list(frames[0]) == ["index", "token", "top_tokens", "generated_text", "details"]
    assert len(frames[0]["top_tokens"]) == 3
    assert frames[0]["top_tokens"][0] == frames[0]["token"]
