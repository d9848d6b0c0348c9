"""The chat protocol of the other servers (vLLM first of all), where it differs from TGI's."""

import time
from typing import Any
from uuid import uuid4

import orjson

from inference.testing.answers import Answer, answer_with
from inference.testing.frames import Token, done, event, json_text, usage_of
from inference.testing.plans import Plan
from inference.testing.rejections import Rejected
from inference.testing.settings import TwinSettings

_NEUTRAL = {"top_p": 1, "presence_penalty": 0, "stream_options": None}
_REASONS = {"stop_sequence": "stop"}


def as_tgi(body: object) -> object:
    """The body with OpenAI's spellings in TGI's."""
    if not isinstance(body, dict):
        return body
    kept = {name: value for name, value in body.items() if name not in _NEUTRAL or value != _NEUTRAL[name]}
    kept.pop("presence_penalty", None)
    if isinstance(kept.get("stop"), str):
        kept["stop"] = [kept["stop"]]
    wanted_format = kept.pop("response_format", None) or {}
    if wanted_format.get("type") == "json_schema":
        kept["response_format"] = {"type": "json_schema", "value": wanted_format["json_schema"]}
    return kept


def error_document(rejected: Rejected) -> dict[str, Any]:
    """A refusal before the stream; most are a bad request."""
    code = 400 if rejected.status == 422 else rejected.status
    return {"error": {"message": rejected.message, "type": rejected.error_type, "param": None, "code": code}}


def without_stop_text(answer: Answer, stop: list[str]) -> Answer:
    """The answer as servers give it that keep the stop string to themselves."""
    if answer.finish != "stop_sequence":
        return answer
    found = next((end for end in stop if answer.text.endswith(end)), "")
    return answer_with(answer.text.removesuffix(found))


def completion_document(plan: Plan) -> dict[str, Any]:
    """The object of a chat that is not streamed."""
    call = plan.tool_call
    message: dict[str, Any] = {"role": "assistant", "content": None if call else plan.answer.text}
    if call:
        function = {"name": call.name, "arguments": plan.answer.text}
        message["tool_calls"] = [{"id": _call_id(), "type": "function", "function": function}]
    reason = "tool_calls" if call else _REASONS.get(plan.answer.finish, plan.answer.finish)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return _head(plan, "chat.completion") | {"choices": [choice], "usage": _usage(plan)}


class OpenAIFace:
    """A role chunk, real ids, the reason in a chunk of its own, cached tokens; nothing for half a character."""

    def __init__(self, settings: TwinSettings, plan: Plan) -> None:
        self._settings = settings
        self._plan = plan
        self._head = orjson.dumps(_head(plan, "chat.completion.chunk"))[:-1]
        self._call_id = _call_id()
        self._sent = 0

    def opening(self) -> list[bytes]:
        """The role chunk."""
        return [self._chunk(b'{"role":"assistant","content":""}')]

    def token(self, token: Token) -> bytes:
        """A chunk with the text; the reason comes in one without."""
        self._sent += 1
        shown = b"" if token.is_special or not token.text else self._chunk(self._delta(token))
        if token.finish is None:
            return shown
        reason = "tool_calls" if self._plan.tool_call else _REASONS.get(token.finish, token.finish)
        return shown + self._chunk(b"{}", json_text(reason))

    def closing(self) -> list[bytes]:
        """The usage if asked for, then `[DONE]`."""
        frames = []
        if self._plan.wanted.include_usage:
            usage = orjson.dumps(_usage(self._plan))
            frames.append(event(b'%b,"choices":[],"usage":%b}' % (self._head, usage), self._settings))
        return frames + done(self._settings)

    def error(self, rejected: Rejected) -> list[bytes]:
        """The error in vLLM's shape, and `[DONE]`."""
        return [event(orjson.dumps(error_document(rejected)), self._settings), *done(self._settings)]

    def _delta(self, token: Token) -> bytes:
        call = self._plan.tool_call
        if call is None:
            return b'{"content":%b}' % json_text(token.text)
        part: dict[str, Any] = {"index": 0, "function": {"arguments": token.text}}
        if self._sent == 1:
            part |= {"id": self._call_id, "type": "function", "function": {"name": call.name, "arguments": token.text}}
        return orjson.dumps({"tool_calls": [part]})

    def _chunk(self, delta: bytes, reason: bytes = b"null") -> bytes:
        choice = b'{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}' % (delta, reason)
        usage = b""
        if self._plan.wanted.counts_continuously:
            tokens_in = self._plan.input_length
            counts = {"prompt_tokens": tokens_in, "completion_tokens": self._sent}
            usage = b',"usage":' + orjson.dumps(counts | {"total_tokens": tokens_in + self._sent})
        return event(b'%b,"choices":[%b]%b}' % (self._head, choice, usage), self._settings)


def _head(plan: Plan, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": plan.wanted.model}


def _usage(plan: Plan) -> dict[str, Any]:
    return usage_of(plan) | {"prompt_tokens_details": {"cached_tokens": 0}}


def _call_id() -> str:
    return f"chatcmpl-tool-{uuid4().hex}"
