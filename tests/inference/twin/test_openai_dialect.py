import json

import pytest

from tests.inference.conformance.raw_http import get, post
from tests.inference.twin.conftest import chat_text, directive

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}}


@pytest.fixture(autouse=True)
def openai(twin):
    twin.change(dialect="openai")


async def test_a_stream_opens_with_a_role_and_ends_with_cached_tokens(say):
    response = await say(directive(text="a b"), stream_options={"include_usage": True})
    first, *_, usage = response.frames()
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert first["id"].startswith("chatcmpl-")
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert chat_text(response) == "a b"
    assert response.events()[-1] == "[DONE]"


async def test_the_reason_comes_in_a_chunk_of_its_own(say):
    *_, text, reason = (await say(directive(text="a b"))).frames()
    assert (text["choices"][0]["delta"], text["choices"][0]["finish_reason"]) == ({"content": " b"}, None)
    assert (reason["choices"][0]["delta"], reason["choices"][0]["finish_reason"]) == ({}, "stop")


async def test_half_a_character_is_no_chunk_but_is_counted(say):
    options = {"include_usage": True, "continuous_usage_stats": True}
    frames = (await say(directive(text="🤗"), stream_options=options)).frames()
    assert [frame["usage"]["completion_tokens"] for frame in frames] == [0, 3, 4, 4]


async def test_a_stop_string_is_kept_back(say):
    response = await say(directive(text="one two three"), stop=" two")
    assert chat_text(response) == "one"
    assert response.frames()[-1]["choices"][0]["finish_reason"] == "stop"


async def test_a_last_assistant_message_is_continued_only_if_asked_and_behind_its_last_character(say):
    prompt = directive(text="one two three")
    assert chat_text(await say(prompt, partial="one ")) == "one two three"
    assert chat_text(await say(prompt, partial="one ", continue_final_message=True)) == "two three"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_comes_before_the_stream(say, stream):
    response = await say("x", stream=stream, temperature=-1)
    assert response.status == 400
    assert response.json()["error"]["code"] == 400


async def test_what_tgi_refuses_is_accepted(say):
    neutral = {"top_p": 1, "presence_penalty": 0, "stream_options": None, "response_format": {"type": "text"}}
    assert chat_text(await say(directive(text="fine"), **neutral)) == "fine"


async def test_a_schema_is_filled(say):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads(chat_text(await say("x", response_format=wanted))) == {"n": 1}


async def test_a_streamed_call_says_tool_calls(say):
    frames = (await say("x", tools=[TOOL], tool_choice="required")).frames()
    calls = [call for frame in frames for call in frame["choices"][0]["delta"].get("tool_calls", ())]
    assert calls[0]["function"]["name"] == "weather"
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"city": "twin"}
    assert frames[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_document_has_an_id_and_the_same_text(say):
    body = (await say(directive(text="whole"), stream=False)).json()
    assert body["id"].startswith("chatcmpl-")
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "whole"}


async def test_an_error_in_the_stream_has_a_code(say):
    response = await say(directive(text="a b", fault={"kind": "error", "after": 1}))
    assert json.loads(response.events()[-2])["error"]["code"] == 424


async def test_the_facts_are_those_of_such_a_server(twin):
    assert (await get(twin.url, "/info")).status == 404
    assert (await get(twin.url, "/v1/models")).json()["data"][0]["max_model_len"] == 16_384
    assert b"vllm:num_requests_running{" in (await get(twin.url, "/metrics")).body
    messages = [{"role": "user", "content": "two words"}]
    counted = (await post(twin.url, "/tokenize", {"messages": messages})).json()
    assert counted["count"] == len(counted["tokens"])
