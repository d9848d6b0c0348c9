"""The bytes of each stream's events, per route and server version."""

import json
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

import orjson

from inference.testing.answers import Answer
from inference.testing.pieces import EOS_ID, EOS_TEXT, piece_id
from inference.testing.plans import Plan
from inference.testing.rejections import Rejected
from inference.testing.requests import Wanted
from inference.testing.settings import TwinSettings

LOGPROB = -0.25
_DONE = "[DONE]"


class Token(NamedTuple):
    """One generated token. `number` is None where the frame shall have no index; `finish` is set on the last one."""

    number: int | None
    text: str
    is_special: bool = False
    finish: str | None = None


class Face(Protocol):
    """How one route shows a stream."""

    def opening(self) -> list[bytes]:
        """Events before the first token."""

    def token(self, token: Token) -> bytes:
        """The event of one token."""

    def closing(self) -> list[bytes]:
        """Events after the last token."""

    def error(self, rejected: Rejected) -> list[bytes]:
        """The events that end a stream in an error."""


def event(payload: bytes, settings: TwinSettings) -> bytes:
    """One event. Servers before 2.1 put no space behind the colon."""
    return (b"data: " if settings.version >= (2, 1) else b"data:") + payload + b"\n\n"


@lru_cache(maxsize=65_536)
def json_text(text: str) -> bytes:
    """A JSON string: raw UTF-8, but a lone surrogate escaped, since no UTF-8 has it."""
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError:
        return json.dumps(text).encode()


def fingerprint(settings: TwinSettings) -> str:
    """The `system_fingerprint` of the /v1 routes."""
    return f"{settings.tgi_version}-native"


def generate_reason(finish: str) -> str:
    """The finish reason as /generate spells it."""
    return "eos_token" if finish == "stop" else finish


def error_object(rejected: Rejected, settings: TwinSettings) -> bytes:
    """The error of a /v1 stream, which claims 422 whatever the cause."""
    if settings.version < (2, 4, 1):
        return plain_error(rejected)
    return orjson.dumps({"error": {"message": rejected.message, "http_status_code": 422}})


def plain_error(rejected: Rejected) -> bytes:
    """The error everywhere else."""
    return orjson.dumps({"error": rejected.message, "error_type": rejected.error_type})


def seed_of(wanted: Wanted) -> int | None:
    """The seed that the details name: none where the decoding was greedy."""
    if not wanted.samples:
        return None
    seed: int | None = wanted.parameters.get("seed")
    return piece_id(wanted.prompt.text) if seed is None else seed


class GenerateFace:
    """/generate_stream, and `/` with `stream`."""

    def __init__(self, settings: TwinSettings, plan: Plan) -> None:
        self._settings = settings
        self._plan = plan
        self._start = event(b"", settings)[:-2]

    def opening(self) -> list[bytes]:
        """Nothing comes before the first token."""
        return []

    def token(self, token: Token) -> bytes:
        """The token, with the generated text and the details on the last one."""
        index = b"" if token.number is None else b'"index":%d,' % token.number
        if token.finish is None and not token.is_special:
            tail = b"null"
            details = b"null"
        else:
            tail, details = self._summary(token)
        token_id = EOS_ID if token.is_special else piece_id(token.text)
        is_special = b"true" if token.is_special else b"false"
        shown = b'{"id":%d,"text":%b,"logprob":-0.25,"special":%b}' % (token_id, json_text(token.text), is_special)
        return b'%b{%b"token":%b,"generated_text":%b,"details":%b}\n\n' % (self._start, index, shown, tail, details)

    def closing(self) -> list[bytes]:
        """The body just ends."""
        return []

    def error(self, rejected: Rejected) -> list[bytes]:
        """One frame."""
        return [event(plain_error(rejected), self._settings)]

    def _summary(self, token: Token) -> tuple[bytes, bytes]:
        text = self._plan.wanted.prompt.text if self._plan.wanted.parameters.get("return_full_text") else ""
        if not self._plan.wanted.parameters.get("details"):
            return json_text(text + self._plan.answer.text), b"null"
        details = {
            "finish_reason": generate_reason(token.finish or self._plan.answer.finish),
            "generated_tokens": self._plan.answer.token_count,
            "seed": seed_of(self._plan.wanted),
        }
        if self._settings.version >= (2, 3):
            details["input_length"] = self._plan.input_length
        return json_text(text + self._plan.answer.text), orjson.dumps(details)


class CompletionFace:
    """/v1/completions: an empty reason until the last chunk, which spells it as /generate does; special texts shown."""

    def __init__(self, settings: TwinSettings, plan: Plan) -> None:
        self._settings = settings
        self._plan = plan
        head = {"object": "text_completion", "id": "", "created": int(time.time())}
        self._head = orjson.dumps(head)[:-1]
        self._tail = orjson.dumps({"model": settings.model_id, "system_fingerprint": fingerprint(settings)})[1:-1]

    def opening(self) -> list[bytes]:
        """Nothing comes before the first token."""
        return []

    def token(self, token: Token) -> bytes:
        """The token's chunk, with the prompt's usage on its last one."""
        reason = b'""' if token.finish is None else json_text(generate_reason(token.finish))
        choice = b'{"index":%d,"text":%b,"logprobs":null,"finish_reason":%b}' % (
            self._plan.index, json_text(token.text), reason,
        )  # fmt: skip
        usage = b""
        if token.finish is not None:
            usage = b',"usage":' + orjson.dumps(usage_of(self._plan))
        return event(b'%b,"choices":[%b],%b%b}' % (self._head, choice, self._tail, usage), self._settings)

    def closing(self) -> list[bytes]:
        """`[DONE]`."""
        return done(self._settings)

    def error(self, rejected: Rejected) -> list[bytes]:
        """The error, and `[DONE]` all the same."""
        return [event(error_object(rejected, self._settings), self._settings), *done(self._settings)]


def tokens_of(answer: Answer) -> Iterator[Token]:
    """The answer's tokens, numbered from 1."""
    last = len(answer.pieces) - (not answer.has_eos)
    for number, piece in enumerate(answer.pieces[:last], start=1):
        yield Token(number, piece)
    if answer.has_eos:
        yield Token(len(answer.pieces) + 1, EOS_TEXT, is_special=True, finish=answer.finish)
    else:
        yield Token(len(answer.pieces), answer.pieces[-1], finish=answer.finish)


def usage_of(*plans: Plan) -> dict[str, object]:
    """Token counts as the /v1 routes name them."""
    tokens_in = sum(plan.input_length for plan in plans)
    tokens_out = sum(plan.answer.token_count for plan in plans)
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def done(settings: TwinSettings) -> list[bytes]:
    """`[DONE]`, which servers before 2.2 did not send."""
    return [event(_DONE.encode(), settings)] if settings.version >= (2, 2) else []
