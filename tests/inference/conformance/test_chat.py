import pytest

from tests.inference.conformance.target import chat_body, compact, contents

KEYS = ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


async def test_each_chunk_has_its_keys_in_their_order(target):
    response = await target.chat(target.endless, stream=True, max_tokens=4)
    for event, frame in zip(response.events(), response.frames(), strict=False):
        assert list(frame) == KEYS
        assert list(frame["choices"][0]) == ["index", "delta", "logprobs", "finish_reason"]
        assert list(frame["choices"][0]["delta"]) == ["role", "content"]
        assert (frame["object"], frame["id"], frame["usage"]) == ("chat.completion.chunk", "", None)
        assert event == compact(frame)


async def test_the_role_is_in_every_delta(target):
    frames = (await target.chat(target.endless, stream=True, max_tokens=4)).frames()
    assert {frame["choices"][0]["delta"]["role"] for frame in frames} == {"assistant"}


async def test_done_comes_once_and_last(target):
    events = (await target.chat(target.endless, stream=True, max_tokens=4)).events()
    assert events.count("[DONE]") == 1
    assert events[-1] == "[DONE]"


async def test_there_is_one_chunk_a_token_and_the_last_has_the_reason(target):
    frames = (await target.chat(target.endless, stream=True, max_tokens=4)).frames()
    assert [frame["choices"][0]["finish_reason"] for frame in frames] == [None, None, None, "length"]


async def test_usage_comes_last_and_only_if_asked_for(target):
    response = await target.chat(target.endless, stream=True, max_tokens=4, stream_options={"include_usage": True})
    *others, usage = response.frames()
    assert all(frame["usage"] is None for frame in others)
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 4
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + 4


async def test_an_end_of_sequence_is_an_empty_last_chunk_that_says_stop(target):
    frames = (await target.chat(target.brief, stream=True, max_tokens=60)).frames()
    last = frames[-1]["choices"][0]
    assert (last["delta"]["content"], last["finish_reason"]) == ("", "stop")


async def test_a_stop_string_is_shown_and_is_the_reason(target):
    whole = contents((await target.chat(target.endless, stream=True, max_tokens=3)).frames())
    frames = (await target.chat(target.endless, stream=True, max_tokens=12, stop=[whole])).frames()
    assert contents(frames) == whole
    assert frames[-1]["choices"][0]["finish_reason"] == "stop_sequence"


async def test_the_document_has_the_same_text_and_the_usage(target):
    streamed = contents((await target.chat(target.endless, stream=True, max_tokens=6)).frames())
    body = (await target.chat(target.endless, max_tokens=6)).json()
    assert list(body) == KEYS
    (choice,) = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": streamed}
    assert (body["object"], body["id"], choice["finish_reason"]) == ("chat.completion", "", "length")
    assert body["usage"]["completion_tokens"] == 6


async def test_the_served_model_is_named_unless_another_is(target):
    model_id = (await target.info())["model_id"]
    assert (await target.chat(target.brief, max_tokens=1)).json()["model"] == model_id
    assert (await target.chat(target.brief, max_tokens=1, model="tgi")).json()["model"] == model_id
    assert (await target.chat(target.brief, max_tokens=1, model="other")).json()["model"] == "other"


async def test_log_probabilities_come_with_each_token(target):
    body = (await target.chat(target.endless, max_tokens=3, logprobs=True)).json()
    content = body["choices"][0]["logprobs"]["content"]
    assert len(content) == 3
    assert all({"token", "logprob", "top_logprobs"} == set(entry) for entry in content)


async def test_a_last_assistant_message_is_continued(target):
    whole = contents((await target.chat(target.endless, stream=True, max_tokens=12)).frames())
    partial = whole[: len(whole) // 2]
    messages = [{"role": "user", "content": target.endless}, {"role": "assistant", "content": partial}]
    body = chat_body(target.endless) | {"messages": messages, "max_tokens": 8}
    rest = contents((await target.post("/v1/chat/completions", body)).frames())
    assert rest
    if target.is_twin:
        assert (partial.rstrip() + rest).startswith(whole)


async def test_content_can_come_in_parts(target):
    parts = [{"type": "text", "text": target.brief[:3]}, {"type": "text", "text": target.brief[3:]}]
    joined = await target.chat(target.brief, max_tokens=6)
    messages = [{"role": "user", "content": parts}]
    split = await target.post("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 6})
    assert split.json()["choices"] == joined.json()["choices"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_template_error_is_a_422_even_for_a_stream(target, stream):
    response = await target.post("/v1/chat/completions", {"messages": [], "stream": stream})
    assert (response.status, response.json()["error_type"]) == (422, "template_error")


@pytest.mark.parametrize("choice", ["required", "weather", {"type": "function", "function": {"name": "weather"}}])
async def test_a_tool_that_must_be_called_is_called(target, choice):
    response = await target.chat("The weather in Rome?", tools=[TOOL], tool_choice=choice, max_tokens=60)
    (answer,) = response.json()["choices"]
    assert answer["finish_reason"] == "stop"
    assert "content" not in answer["message"]
    (call,) = answer["message"]["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("0", "function", "weather")
    assert isinstance(call["function"]["arguments"], str)


async def test_a_streamed_call_has_no_reason_and_its_arguments_join_to_json(target):
    response = await target.chat(
        "The weather in Rome?", tools=[TOOL], tool_choice="required", stream=True, max_tokens=60
    )
    frames = response.frames()
    assert {frame["choices"][0]["finish_reason"] for frame in frames} == {None}
    calls = [frame["choices"][0]["delta"]["tool_calls"][0]["function"] for frame in frames]
    assert calls[0]["name"] == "weather"
    assert calls[0]["arguments"].startswith("{")
    assert response.events()[-1] == "[DONE]"


async def test_tools_that_shall_not_be_called_are_not(target):
    response = await target.chat(target.brief, tools=[TOOL], tool_choice="none", max_tokens=6)
    assert response.json()["choices"][0]["message"]["content"]


async def test_an_unknown_tool_is_refused(target):
    response = await target.chat(target.brief, tools=[TOOL], tool_choice="nobody", stream=True)
    assert (response.status, response.json()["error_type"]) == (422, "tool_error")


async def test_tools_and_a_response_format_exclude_each_other(target):
    wanted = {"type": "json_object", "value": {"properties": {}}}
    response = await target.chat(target.brief, tools=[TOOL], response_format=wanted)
    assert (response.status, response.json()["error_type"]) == (422, "tool_error")


async def test_an_unwanted_options_object_must_not_be_null(target):
    response = await target.chat(target.brief, stream_options=None)
    assert (response.status, response.headers["content-type"]) == (422, "text/plain; charset=utf-8")
