"""The bytes of a chat stream's events: text and tool calls."""

import time

import orjson

from inference.testing.frames import Token, done, error_object, event, fingerprint, json_text, usage_of
from inference.testing.plans import Plan
from inference.testing.rejections import Rejected
from inference.testing.settings import TwinSettings
from inference.testing.tools import ToolCall


def chat_reason(finish: str, settings: TwinSettings) -> str:
    """The finish reason as the chat route spells it."""
    return "eos_token" if finish == "stop" and settings.version < (2, 3) else finish


class ChatFace:
    """/v1/chat/completions: a role in every delta, the reason on the last token, `[DONE]` at the very end."""

    def __init__(self, settings: TwinSettings, plan: Plan) -> None:
        self._settings = settings
        self._plan = plan
        head = {"object": "chat.completion.chunk", "id": "", "created": int(time.time()), "model": plan.wanted.model}
        self._head = orjson.dumps(head | {"system_fingerprint": fingerprint(settings)})[:-1]
        self._start = event(b"", settings)[:-2] + self._head + (
            b',"choices":[{"index":0,"delta":{"role":"assistant","content":'
        )  # fmt: skip

    def opening(self) -> list[bytes]:
        """TGI sends no role of its own."""
        return []

    def token(self, token: Token) -> bytes:
        """The token's chunk; a special token shows no text."""
        text = "" if token.is_special else token.text
        reason = b"null" if token.finish is None else json_text(chat_reason(token.finish, self._settings))
        return b'%b%b},"logprobs":%b,"finish_reason":%b}],"usage":null}\n\n' % (
            self._start, json_text(text), self._logprobs(token), reason,
        )  # fmt: skip

    def closing(self) -> list[bytes]:
        """The usage if asked for, then `[DONE]`."""
        frames = []
        if self._plan.wanted.include_usage and self._settings.version >= (2, 3):
            usage = orjson.dumps(usage_of(self._plan))
            frames.append(event(self._head + b',"choices":[],"usage":' + usage + b"}", self._settings))
        return frames + done(self._settings)

    def error(self, rejected: Rejected) -> list[bytes]:
        """The error, and `[DONE]` all the same."""
        return [event(error_object(rejected, self._settings), self._settings), *done(self._settings)]

    def _logprobs(self, token: Token) -> bytes:
        if not self._plan.wanted.wants_logprobs:
            return b"null"
        return b'{"content":[{"token":%b,"logprob":-0.25,"top_logprobs":[]}]}' % json_text(token.text)


class ToolFace(ChatFace):
    """A streamed call: its name with the opening brace, then the arguments; an end of sequence is swallowed."""

    def __init__(self, settings: TwinSettings, plan: Plan, call: ToolCall) -> None:
        super().__init__(settings, plan)
        self._call = call

    def token(self, token: Token) -> bytes:
        """A piece of the arguments."""
        if token.is_special:
            return b""
        name = self._call.name if token.number == 1 else None
        function = {"name": name, "arguments": token.text}
        call: object = {"index": 0, "id": self._call.call_id, "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call] if self._settings.version >= (3, 2) else call}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": token.finish}
        payload = self._head + b',"choices":[' + orjson.dumps(choice) + b'],"usage":null}'
        return event(payload, self._settings)


def chat_face(settings: TwinSettings, plan: Plan) -> ChatFace:
    """How TGI shows this answer."""
    return ToolFace(settings, plan, plan.tool_call) if plan.tool_call else ChatFace(settings, plan)
