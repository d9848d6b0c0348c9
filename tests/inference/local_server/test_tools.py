import json

import pytest

from inference.local_server.errors import ToolError
from inference.local_server.tools import CallReader, complete_arguments
from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import WEATHER_TOOL, chat

ROUTE = "/v1/chat/completions"
QUESTION = "What is the weather in Rome, in celsius?"
real_model = pytest.mark.real_model


def tool_chat(**fields) -> dict:
    return chat(QUESTION, tools=[WEATHER_TOOL], max_tokens=60) | fields


@real_model
@pytest.mark.parametrize(
    "choice", ["auto", "required", "get_weather", {"type": "function", "function": {"name": "get_weather"}}]
)
async def test_a_call_names_the_tool_and_its_arguments(server, choice):
    (result,) = (await raw_http.post(server.url, ROUTE, tool_chat(tool_choice=choice))).json()["choices"]
    (call,) = result["message"]["tool_calls"]
    assert "content" not in result["message"]
    assert result["finish_reason"] == "stop"
    assert call["id"] == "0"
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"location": "Rome", "unit": "celsius"}


@real_model
async def test_a_streamed_call_is_assembled_from_its_pieces_and_gives_no_reason(server):
    response = await raw_http.post(server.url, ROUTE, tool_chat(tool_choice="required", stream=True))
    choices = [frame["choices"][0] for frame in response.frames()]
    calls = [choice["delta"]["tool_calls"][0] for choice in choices]
    assert calls[0]["function"] == {"name": "get_weather", "arguments": "{"}
    assert all(call["function"]["name"] is None for call in calls[1:])
    assert {call["id"] for call in calls} == {"0"}
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(arguments) == {"location": "Rome", "unit": "celsius"}
    assert {choice["finish_reason"] for choice in choices} == {None}
    assert response.events()[-1] == "[DONE]"


@real_model
async def test_a_call_cut_inside_its_arguments_says_length(server):
    body = tool_chat(tool_choice="required", stream=True, max_tokens=16)
    frames = (await raw_http.post(server.url, ROUTE, body)).frames()
    assert frames[-1]["choices"][0]["finish_reason"] == "length"


@real_model
async def test_a_call_cut_in_a_whole_answer_is_a_tool_error(server):
    response = await raw_http.post(server.url, ROUTE, tool_chat(tool_choice="required", max_tokens=16))
    assert response.status == 422
    assert response.json()["error_type"] == "tool_error"


@real_model
async def test_no_tools_are_used_when_none_are_chosen(server):
    (result,) = (await raw_http.post(server.url, ROUTE, tool_chat(tool_choice="none"))).json()["choices"]
    assert "tool_calls" not in result["message"]


@real_model
@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_wants_no_tool_answers_in_words(server, stream):
    body = chat(
        "Say good morning.",
        tools=[WEATHER_TOOL],
        tool_prompt='Answer exactly {"function": {"_name": "no_tool"}} and nothing else.',
        stream=stream,
    )
    response = await raw_http.post(server.url, ROUTE, body)
    said = (
        "".join(frame["choices"][0]["delta"]["content"] for frame in response.frames())
        if stream
        else response.json()["choices"][0]["message"]["content"]
    )
    assert "morning" in said.lower()
    assert "no_tool" not in said


@real_model
@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "get_time"},
        {"tool_choice": {"type": "function", "function": {"name": "get_time"}}},
        {"response_format": {"type": "json_object", "value": {"properties": {}}}},
    ],
)
async def test_tools_that_cannot_be_used_are_a_real_422_even_for_a_stream(server, fields):
    response = await raw_http.post(server.url, ROUTE, tool_chat(stream=True) | fields)
    assert response.status == 422
    assert response.json()["error_type"] == "tool_error"


@real_model
async def test_the_answer_of_a_tool_is_accepted(server):
    call = {"id": "3", "type": "function", "function": {"name": "get_weather", "arguments": {"location": "Rome"}}}
    messages = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "21 degrees", "tool_call_id": "3"},
    ]
    body = tool_chat(messages=messages, tool_choice="required")
    (made,) = (await raw_http.post(server.url, ROUTE, body)).json()["choices"][0]["message"]["tool_calls"]
    assert made["id"] == "4"


WRITTEN = '{"function": {"_name": "find", "text": "a } b", "deep": {"x": [1, {}]}}}'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 31, 200])
def test_a_call_is_read_whatever_the_pieces_it_comes_in(size):
    reader = CallReader("7")
    deltas = [delta for start in range(0, len(WRITTEN), size) for delta in reader.read(WRITTEN[start : start + size])]
    assert [delta.name for delta in deltas if delta.name] == ["find"]
    assert json.loads("".join(delta.arguments for delta in deltas)) == {"text": "a } b", "deep": {"x": [1, {}]}}


def test_a_call_without_arguments_is_read():
    reader = CallReader("0")
    deltas = [delta for letter in '{"function": {"_name": "now"}}' for delta in reader.read(letter)]
    assert "".join(delta.arguments for delta in deltas) == "{}"


def test_cut_arguments_are_a_tool_error():
    with pytest.raises(ToolError):
        complete_arguments('{"text": "a')
