"""The chat routes: `/v1/chat/completions` and `/chat_tokenize`."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson
from aiohttp import web

from inference.local_server.bodies import JsonObject, read_fields
from inference.local_server.chat_body import ChatBody, read_chat_body
from inference.local_server.dialogue import ChatDelta, Dialogue, finish_reason, open_dialogue
from inference.local_server.errors import RequestError
from inference.local_server.frames import DONE, event, float32, send_events
from inference.local_server.generate import json_response, token_list
from inference.local_server.openai_frames import error_event, usage_value
from inference.local_server.service import SERVICE, Service
from inference.local_server.timing_headers import stream_headers, timing_headers
from inference.local_server.tools import complete_arguments


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/chat/completions: one JSON object, or one event per token."""
    service = request.app[SERVICE]
    body = read_chat_body(await read_fields(request))
    dialogue = open_dialogue(service, body)
    if not body.stream:
        return await _whole(service, dialogue)
    return await send_events(
        request,
        _events(service, dialogue),
        headers=stream_headers(len(dialogue.prompt)),
        keep_alive_seconds=service.keep_alive_seconds,
    )


async def chat_tokenize(request: web.Request) -> web.StreamResponse:
    """POST /chat_tokenize: the rendered prompt and its tokens."""
    service = request.app[SERVICE]
    dialogue = open_dialogue(service, read_chat_body(await read_fields(request)))
    tokens = await token_list(service, dialogue.prompt, add_special=False)
    return json_response({"tokenize_response": tokens, "templated_text": dialogue.prompt})


async def _whole(service: Service, dialogue: Dialogue) -> web.Response:
    arrived = time.monotonic()
    with service.metrics.request(), service.load.permit():
        deltas = []
        async with aclosing(dialogue.deltas(service.generator)) as incoming:
            async for delta in incoming:
                deltas.append(delta)
        ending = deltas[-1].ending
        assert ending is not None
        service.metrics.finished(ending)
        message = _message(deltas)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(dialogue.body, deltas),
        "finish_reason": finish_reason(ending),
    }
    value = _envelope(service, dialogue.body, "chat.completion") | {"choices": [choice], "usage": usage_value(ending)}
    return json_response(value, timing_headers([ending], characters=len(dialogue.prompt), arrived=arrived))


def _message(deltas: list[ChatDelta]) -> JsonObject:
    """The assistant's message. Raises `ToolError` for a call that was cut."""
    if deltas[-1].content is not None:
        return {"role": "assistant", "content": "".join(delta.content or "" for delta in deltas)}
    pieces = [delta.call for delta in deltas if delta.call is not None]
    arguments = complete_arguments("".join(piece.arguments for piece in pieces))
    function = {
        "description": None,
        "name": pieces[0].name,
        "arguments": orjson.dumps(arguments).decode(),
    }
    return {"role": "assistant", "tool_calls": [{"id": pieces[0].id, "type": "function", "function": function}]}


async def _events(service: Service, dialogue: Dialogue) -> AsyncGenerator[bytes]:
    try:
        with service.metrics.request(), service.load.permit():
            async with aclosing(dialogue.deltas(service.generator)) as deltas:
                async for delta in deltas:
                    if delta.ending is not None:
                        service.metrics.finished(delta.ending)
                    for chunk in _chunks(service, dialogue.body, delta):
                        yield event(chunk)
    except RequestError as error:
        yield error_event(error)
    yield DONE


def _chunks(service: Service, body: ChatBody, delta: ChatDelta) -> list[JsonObject]:
    chunks = []
    shown = _shown(delta)
    envelope = _envelope(service, body, "chat.completion.chunk")
    if shown is not None:
        choice = {
            "index": 0,
            "delta": {"role": "assistant"} | shown,
            "logprobs": _logprobs(body, [delta]),
            "finish_reason": delta.finish_reason,
        }
        chunks.append(envelope | {"choices": [choice], "usage": None})
    if body.include_usage and delta.ending is not None:
        chunks.append(envelope | {"choices": [], "usage": usage_value(delta.ending)})
    return chunks


def _shown(delta: ChatDelta) -> JsonObject | None:
    if delta.call is not None:
        function = {"name": delta.call.name, "arguments": delta.call.arguments}
        return {"tool_calls": [{"index": 0, "id": delta.call.id, "type": "function", "function": function}]}
    return None if delta.content is None else {"content": delta.content}


def _envelope(service: Service, body: ChatBody, kind: str) -> JsonObject:
    return {
        "object": kind,
        "id": "",
        "created": int(time.time()),
        "model": service.model.model_id if body.model in (None, "tgi") else body.model,
        "system_fingerprint": service.fingerprint,
    }


def _logprobs(body: ChatBody, deltas: list[ChatDelta]) -> JsonObject | None:
    if not body.logprobs:
        return None
    content = [
        {
            "token": delta.token.text,
            "logprob": float32(delta.token.logprob),
            "top_logprobs": [
                {"token": other.text, "logprob": float32(other.logprob)} for other in delta.token.alternatives
            ],
        }
        for delta in deltas
    ]
    return {"content": content}
