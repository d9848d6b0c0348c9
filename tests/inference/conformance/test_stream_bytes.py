import re

import pytest

from tests.inference.conformance.target import compact

EVENT = re.compile(rb"data: \{[^\n]*\}")


async def stream(target, user, **parameters):
    return await target.generate(user, path="/generate_stream", details=True, **parameters)


@pytest.fixture
async def response(target):
    return await stream(target, target.endless, max_new_tokens=8)


async def test_every_event_is_one_line_of_json_between_line_feeds(response):
    *events, rest = response.body.split(b"\n\n")
    assert rest == b""
    assert all(EVENT.fullmatch(event) or event == b":" for event in events)


async def test_json_is_compact_and_in_order(response):
    for event, frame in zip(response.events(), response.frames(), strict=True):
        keys = [key for key in frame if key != "top_tokens"]
        assert keys == ["index", "token", "generated_text", "details"]
        assert list(frame["token"]) == ["id", "text", "logprob", "special"]
        assert re.sub(r'"logprob":[^,]+', "", event) == re.sub(r'"logprob":[^,]+', "", compact(frame))


async def test_indexes_begin_at_1_without_a_gap(response):
    assert [frame["index"] for frame in response.frames()] == list(range(1, 9))


async def test_only_the_last_frame_is_final(response):
    *others, last = response.frames()
    assert all(frame["generated_text"] is None and frame["details"] is None for frame in others)
    assert isinstance(last["generated_text"], str)
    assert list(last["details"]) == ["finish_reason", "generated_tokens", "seed", "input_length"]


async def test_there_is_no_done(response):
    assert b"[DONE]" not in response.body
    assert response.ended == "complete"


async def test_texts_join_to_the_generated_text(response):
    shown = "".join(frame["token"]["text"] for frame in response.frames() if not frame["token"]["special"])
    assert shown == response.frames()[-1]["generated_text"]


async def test_a_stream_has_its_headers_and_no_timings(response):
    headers = response.headers
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["transfer-encoding"] == "chunked"
    assert {"x-compute-type", "x-compute-characters"} <= headers.keys()
    assert not {"x-prompt-tokens", "x-generated-tokens", "x-total-time"} & headers.keys()


async def test_without_details_the_last_frame_has_only_the_text(target):
    response = await target.generate(target.endless, path="/generate_stream", max_new_tokens=2)
    last = response.frames()[-1]
    assert isinstance(last["generated_text"], str)
    assert last["details"] is None


async def test_an_end_of_sequence_comes_as_a_special_token_in_the_last_frame(target):
    last = (await stream(target, target.brief, max_new_tokens=60)).frames()[-1]
    assert last["token"]["special"] is True
    assert last["details"]["finish_reason"] == "eos_token"
    assert last["token"]["text"] not in last["generated_text"]


async def test_characters_of_several_tokens_come_whole(target):
    response = await stream(target, target.multibyte, max_new_tokens=40)
    texts = [frame["token"]["text"] for frame in response.frames() if not frame["token"]["special"]]
    assert not any("\ufffd" in text for text in texts)
    assert "" in texts
    if target.is_twin:
        assert "".join(texts) == "🤗😄👨\u200d👩 我很好 기"


async def test_the_root_streams_if_asked(target):
    prompt = await target.prompt(target.endless)
    body = {"inputs": prompt, "stream": True, "parameters": {"max_new_tokens": 2, "return_full_text": False}}
    response = await target.post("/", body)
    assert [frame["index"] for frame in response.frames()] == [1, 2]
    assert not response.frames()[-1]["generated_text"].startswith(prompt)


async def test_a_stream_and_a_document_say_the_same(target):
    streamed = (await stream(target, target.endless, max_new_tokens=8)).frames()[-1]["generated_text"]
    document = (await target.generate(target.endless, max_new_tokens=8)).json()["generated_text"]
    assert streamed == document
