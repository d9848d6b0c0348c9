"""One frame of a chat stream: JSON bytes in, text, finish reason and usage out, in every server's dialect."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from inference.events import StopReason
from inference.server_words import believed_count
from inference.tgi.errors import Incomplete, Misbehaved, error_of_frame

_GIVEN_UP = frozenset({"abort", "error", "cancelled"})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as a server counted them; `None` where it does not say."""

    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None


class Chunk(NamedTuple):
    """What one frame adds to an answer. `is_delta` is false for a frame without a choice, such as the usage."""

    text: str
    reasoning: str
    reason: StopReason | None
    usage: Usage | None
    is_delta: bool


def parse_chunk(payload: bytes) -> Chunk:
    """Reads one frame. Raises the error that the frame tells, or `Misbehaved` if it is not a chat chunk at all."""
    frame = _parse_object(payload)
    if "error" in frame and (error := error_of_frame(frame)) is not None:
        raise error
    told = frame.get("usage")
    usage = None if told is None else _parse_usage(told)
    choices = frame.get("choices")
    if not choices:
        return Chunk("", "", None, usage, False)
    text, reasoning, reason = _parse_choice(choices)
    return Chunk(text, reasoning, reason, usage, True)


def _parse_choice(choices: Any) -> tuple[str, str, StopReason | None]:
    try:
        choice = choices[0]
        delta = choice.get("delta") or {}
        text = delta.get("content") or ""
        reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
        reason = choice.get("finish_reason")
    except (AttributeError, TypeError, LookupError) as error:
        raise Misbehaved("a frame of the stream is not a chat chunk") from error
    if not isinstance(text, str) or not isinstance(reasoning, str):
        raise Misbehaved("the text of a chat chunk is not a string")
    return text, reasoning, _parse_reason(reason) if reason else None


def _parse_object(payload: bytes) -> dict[str, object]:
    try:
        frame = orjson.loads(payload)
    except orjson.JSONDecodeError:
        frame = _parse_leniently(payload)
    if not isinstance(frame, dict):
        raise Misbehaved("a frame of the stream is not a JSON object")
    return frame


def _parse_leniently(payload: bytes) -> object:
    """orjson refuses lone surrogates, which a server may well send: half of an escaped pair in each of two frames."""
    try:
        return json.loads(payload.decode())
    except (ValueError, RecursionError) as error:
        raise Misbehaved("a frame of the stream is not JSON in UTF-8") from error


def _parse_reason(reason: object) -> StopReason:
    if not isinstance(reason, str):
        raise Misbehaved("a finish reason is not a string")
    if reason in _GIVEN_UP:
        raise Incomplete(f"the server gave the answer up: {reason}")
    # Servers have many words for a whole answer (stop, eos_token, stop_sequence, ...), but for a cut one just one.
    return "length" if reason == "length" else "stop"


def _parse_usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    return Usage(
        tokens_in=believed_count(usage.get("prompt_tokens")),
        tokens_cached=believed_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        tokens_out=believed_count(usage.get("completion_tokens")),
    )
