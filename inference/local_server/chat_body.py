"""The body of a chat request, as the client sent it."""

from dataclasses import dataclass
from typing import Any

import orjson

from inference.local_server.bodies import MAX_UINT64, Fields, JsonObject
from inference.local_server.errors import RejectedBodyError
from inference.local_server.grammar import Grammar, read_grammar
from inference.local_server.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. `arguments` is its JSON schema."""

    name: str
    description: str | None
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ChatBody:
    """A chat request. `tool_choice` is `auto`, `none`, `required` or a function's name."""

    messages: tuple[JsonObject, ...]
    model: str | None
    parameters: Parameters
    stream: bool
    include_usage: bool
    logprobs: bool
    tools: tuple[Tool, ...] | None
    tool_choice: str
    tool_prompt: str | None
    response_format: Grammar | None


def read_chat_body(fields: Fields) -> ChatBody:
    """Raises `RejectedBodyError` for a wrong shape."""
    fields.required_value("messages")
    fields.not_null("messages")
    fields.not_null("stream_options")
    stream_options = fields.object("stream_options")
    _check_ignored(fields)
    tools = fields.objects("tools")
    return ChatBody(
        messages=tuple(_read_message(message) for message in fields.objects("messages") or []),
        model=fields.text("model"),
        parameters=_read_parameters(fields),
        stream=fields.flag("stream", default=False),
        include_usage=stream_options is not None and stream_options.flag("include_usage", default=False),
        logprobs=bool(fields.optional_flag("logprobs")),
        tools=None if tools is None else tuple(_read_tool(tool) for tool in tools),
        tool_choice=_read_tool_choice(fields),
        tool_prompt=fields.text("tool_prompt"),
        response_format=read_grammar(fields, "response_format"),
    )


def _read_parameters(fields: Fields) -> Parameters:
    """The generation parameters that TGI derives from a chat request."""
    temperature = fields.number("temperature")
    presence_penalty = fields.number("presence_penalty")
    max_tokens = fields.unsigned("max_tokens")
    return Parameters(
        temperature=None if temperature == 0 else temperature,
        do_sample=temperature != 0,
        repetition_penalty=None if presence_penalty is None else presence_penalty + 2.0,
        frequency_penalty=fields.number("frequency_penalty"),
        top_p=fields.number("top_p"),
        max_new_tokens=fields.unsigned("max_completion_tokens") if max_tokens is None else max_tokens,
        stop=fields.texts("stop") or (),
        seed=fields.unsigned("seed", MAX_UINT64),
        top_n_tokens=fields.unsigned("top_logprobs"),
        details=True,
    )


def _check_ignored(fields: Fields) -> None:
    """Fields that change nothing must still have the right shape."""
    fields.unsigned("n")
    for value in fields.items("logit_bias") or []:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise fields.refuse("logit_bias", "expected f32")


def _read_message(message: Fields) -> JsonObject:
    """Role and text content. Tool calls without a content become its JSON text."""
    role = message.required_text("role")
    content = message.value("content")
    if isinstance(content, str):
        return {"role": role, "content": content}
    if isinstance(content, list):
        parts = message.objects("content") or []
        return {"role": role, "content": "".join(_read_part(part) for part in parts)}
    if content is None and message.items("tool_calls") is not None:
        calls = [_read_call(call) for call in message.objects("tool_calls") or []]
        return {"role": role, "content": orjson.dumps(calls).decode(), "tool_call_ids": [call["id"] for call in calls]}
    raise _no_variant(message)


def _read_part(part: Fields) -> str:
    match part.required_text("type"):
        case "text":
            return part.required_text("text")
        case "image_url":
            image = Fields.of(part.required_value("image_url"), f"{part.path}.image_url")
            return f"![]({image.required_text('url')})"
        case _:
            raise _no_variant(part)


def _read_call(call: Fields) -> JsonObject:
    function = Fields.of(call.required_value("function"), f"{call.path}.function")
    return {
        "id": call.required_text("id"),
        "type": call.required_text("type"),
        "function": {
            "description": function.text("description"),
            "name": function.required_text("name"),
            "arguments": function.value("arguments"),
        },
    }


def _read_tool(tool: Fields) -> Tool:
    tool.required_text("type")
    function = Fields.of(tool.required_value("function"), f"{tool.path}.function")
    name = "parameters" if "parameters" in function else "arguments"
    arguments = Fields.of(function.required_value(name), f"{function.path}.{name}")
    return Tool(function.required_text("name"), function.text("description"), dict(arguments.values))


def _read_tool_choice(fields: Fields) -> str:
    choice: Any = fields.value("tool_choice")
    if choice is None:
        return "auto"
    if isinstance(choice, str):
        return choice
    chosen = Fields.of(choice, "tool_choice")
    function = Fields.of(chosen.required_value("function"), "tool_choice.function")
    return function.required_text("name")


def _no_variant(message: Fields) -> RejectedBodyError:
    return message.refuse("content", "data did not match any variant of untagged enum MessageBody")
