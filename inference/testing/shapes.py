"""The shapes of TGI's request bodies: which fields, of which type, and which may be null."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from inference.testing.rejections import Unreadable

_UINT32 = 2**32 - 1

# A trailing `?` lets the field be null.
PARAMETERS = {
    "best_of": "uint?", "temperature": "float?", "repetition_penalty": "float?", "frequency_penalty": "float?",
    "top_k": "int?", "top_p": "float?", "typical_p": "float?", "do_sample": "bool", "max_new_tokens": "uint32?",
    "return_full_text": "bool?", "stop": "strings", "truncate": "uint?", "watermark": "bool", "details": "bool",
    "decoder_input_details": "bool", "seed": "uint?", "top_n_tokens": "uint32?", "grammar": "grammar?",
    "adapter_id": "string?",
}  # fmt: skip
GENERATE = {"inputs": "string!", "parameters": "parameters", "stream": "bool"}
VERTEX = {"instances": "instances!"}
CHAT = {
    "messages": "messages!", "model": "string?", "max_tokens": "uint32?", "max_completion_tokens": "uint32?",
    "temperature": "float?", "top_p": "float?", "presence_penalty": "float?", "frequency_penalty": "float?",
    "stop": "strings?", "seed": "uint?", "stream": "bool", "stream_options": "stream_options", "logprobs": "bool?",
    "top_logprobs": "uint32?", "tools": "array?", "tool_choice": "any?", "tool_prompt": "string?",
    "response_format": "grammar?", "n": "uint32?", "logit_bias": "floats?",
}  # fmt: skip
COMPLETION = {
    "model": "string?", "prompt": "prompt!", "max_tokens": "uint32?", "temperature": "float?", "top_p": "float?",
    "stream": "bool", "seed": "uint?", "suffix": "string?", "repetition_penalty": "float?",
    "frequency_penalty": "float?", "stop": "strings?",
}  # fmt: skip


def check_shape(body: object, shape: dict[str, str], *, path: str = "", null_options: bool = False) -> dict[str, Any]:
    """The body, if it has the shape; else the plain-text 422."""
    if not isinstance(body, dict):
        raise _mismatch(path or ".", "invalid type, expected struct")
    for name, rule in shape.items():
        kind, demanded, nullable = rule.rstrip("?!"), rule.endswith("!"), rule.endswith("?")
        nullable = nullable or (kind == "stream_options" and null_options)
        if name not in body:
            if demanded:
                raise _mismatch(path or ".", f"missing field `{name}`")
            continue
        if body[name] is None and nullable:
            continue
        where = f"{path}.{name}" if path else name
        if kind == "parameters":
            check_shape(body[name], PARAMETERS, path=where)
        elif not _FITS[kind](body[name]):
            raise _mismatch(where, f"invalid value, expected {kind}")
    return body


def parse_json(raw: bytes) -> object:
    """The JSON of a body; else the plain-text 400."""
    try:
        return json.loads(raw)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Unreadable(400, f"Failed to parse the request body as JSON: {error}") from error


def _mismatch(where: str, text: str) -> Unreadable:
    return Unreadable(422, f"Failed to deserialize the JSON body into the target type: {where}: {text}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_uint(value: object, maximum: int = 2**64 - 1) -> bool:
    return _is_int(value) and isinstance(value, int) and 0 <= value <= maximum


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_array_of(fits: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list) and all(fits(item) for item in value)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_grammar(value: object) -> bool:
    if not isinstance(value, dict) or "value" not in value:
        return False
    match value.get("type"):
        case "json" | "json_object":
            return isinstance(value["value"], dict | str)
        case "regex":
            return isinstance(value["value"], str)
        case "json_schema":
            return isinstance(value["value"], dict) and isinstance(value["value"].get("schema"), dict)
    return False


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    content = value.get("content")
    if isinstance(content, list):
        return all(isinstance(part, dict) and part.get("type") in ("text", "image_url") for part in content)
    return isinstance(content, str) or isinstance(value.get("tool_calls"), list)


_FITS: dict[str, Callable[[object], bool]] = {
    "any": lambda _value: True,
    "string": _is_string,
    "bool": lambda value: isinstance(value, bool),
    "int": _is_int,
    "uint": _is_uint,
    "uint32": partial(_is_uint, maximum=_UINT32),
    "float": _is_number,
    "array": lambda value: isinstance(value, list),
    "strings": partial(_is_array_of, _is_string),
    "instances": lambda value: isinstance(value, list) and bool(value),
    "floats": partial(_is_array_of, _is_number),
    "prompt": lambda value: _is_string(value) or (bool(value) and _is_array_of(_is_string, value)),
    "grammar": _is_grammar,
    "stream_options": lambda value: isinstance(value, dict) and isinstance(value.get("include_usage", False), bool),
    "messages": partial(_is_array_of, _is_message),
}
