"""Grammars that an answer must follow: read from requests, checked, and written for the engine."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from llguidance import LLMatcher

from inference.local_server.bodies import Fields, JsonObject
from inference.local_server.errors import InvalidInputError

_SEPARATORS = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "coerce_one_of": True}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A JSON schema (an object, or text that should hold one) or a regular expression."""

    kind: Literal["json", "regex"]
    value: Any


def read_grammar(fields: Fields, name: str) -> Grammar | None:
    """The grammar object in field `name`; raises `RejectedBodyError` for a wrong shape."""
    given = fields.object(name)
    if given is None:
        return None
    kind = given.required_text("type")
    match kind:
        case "json" | "json_object":
            return Grammar("json", given.required_value("value"))
        case "regex":
            return Grammar("regex", given.required_text("value"))
        case "json_schema":
            described = Fields.of(given.required_value("value"), f"{given.path}.value")
            return Grammar("json", described.required_value("schema"))
        case _:
            expected = "`json`, `json_object`, `regex`, `json_schema`"
            raise given.refuse("type", f"unknown variant `{kind}`, expected one of {expected}")


def engine_grammar(grammar: Grammar) -> str:
    """The grammar in the engine's notation. Raises `InvalidInputError` for one that cannot be followed.

    It must be checked here: the engine would write free text where a grammar does not compile.
    """
    if grammar.kind == "regex":
        written = "%llguidance {}\nstart: /" + _escape_slashes(grammar.value) + "/"
    else:
        written = json_grammar(_closed(_schema(grammar.value)))
    complaint = LLMatcher.validate_grammar(written, None)
    if complaint:
        raise InvalidInputError(f"grammar is not valid: {complaint.splitlines()[0]}")
    return written


def json_grammar(schema: JsonObject) -> str:
    """A schema as the engine's grammar. Fixed separators keep small models from endless white space."""
    return "%llguidance {}\nstart: %json " + orjson.dumps(schema | {"x-guidance": _SEPARATORS}).decode()


def _schema(value: Any) -> JsonObject:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise InvalidInputError(f"grammar is not valid: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInputError("grammar is not valid: the schema is not an object")
    if "properties" not in value:
        raise InvalidInputError("grammar is not valid: Grammar must have a 'properties' field")
    return value


def _closed(schema: JsonObject) -> JsonObject:
    """The schema with `additionalProperties` off where it says nothing, as TGI's own grammars have it."""
    closed = dict(schema)
    properties = closed.get("properties")
    if isinstance(properties, dict):
        closed["properties"] = {name: _closed_if_object(below) for name, below in properties.items()}
        closed.setdefault("additionalProperties", False)
    if "items" in closed:
        closed["items"] = _closed_if_object(closed["items"])
    return closed


def _closed_if_object(schema: Any) -> Any:
    return _closed(schema) if isinstance(schema, dict) else schema


def _escape_slashes(pattern: str) -> str:
    """A bare slash would end the engine's notation of a pattern; so would a line break."""
    escaped = re.sub(r"(\\.)|/", lambda match: match[1] or r"\/", pattern, flags=re.DOTALL)
    return escaped.replace("\n", r"\n")
