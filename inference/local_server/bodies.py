"""Reads request bodies: the size, the type, the JSON, and the shape of each field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from inference.local_server.errors import RejectedBodyError

MAX_UINT32 = 2**32 - 1
MAX_UINT64 = 2**64 - 1

type JsonObject = dict[str, Any]


async def read_fields(request: web.Request) -> "Fields":
    """The request's JSON object. Raises `RejectedBodyError` with 415, 413, 400 or 422, tested in this order."""
    if not _is_json(request.content_type):
        raise RejectedBodyError(415, "Expected request with `Content-Type: application/json`")
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise RejectedBodyError(413, "Failed to buffer the request body: length limit exceeded") from error
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise RejectedBodyError(400, f"Failed to parse the request body as JSON: {reason}") from error
    return Fields.of(value, path="")


def wrong_shape(path: str, reason: str) -> RejectedBodyError:
    """Right JSON of a wrong shape."""
    where = f"{path}: " if path else ""
    return RejectedBodyError(422, f"Failed to deserialize the JSON body into the target type: {where}{reason}")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object. A reader without `required_` returns `None` for an absent or null field."""

    values: Mapping[str, Any]
    path: str

    @classmethod
    def of(cls, value: Any, path: str) -> "Fields":
        if not isinstance(value, dict):
            raise wrong_shape(path, f"invalid type: {_kind(value)}, expected a map")
        return cls(value, path)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def value(self, name: str) -> Any:
        return self.values.get(name)

    def required_value(self, name: str) -> Any:
        if name not in self.values:
            raise wrong_shape(self.path, f"missing field `{name}`")
        return self.values[name]

    def required_text(self, name: str) -> str:
        value = self.required_value(name)
        if not isinstance(value, str):
            raise self._mismatch(name, "a string")
        return value

    def text(self, name: str) -> str | None:
        return None if self.value(name) is None else self.required_text(name)

    def flag(self, name: str, default: bool) -> bool:
        """A boolean that may be absent but not null."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self._mismatch(name, "a boolean")
        return value

    def optional_flag(self, name: str) -> bool | None:
        return None if self.value(name) is None else self.flag(name, default=False)

    def number(self, name: str) -> float | None:
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._mismatch(name, "f32")
        return float(value)

    def integer(self, name: str, minimum: int, maximum: int) -> int | None:
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mismatch(name, "an integer")
        if not minimum <= value <= maximum:
            raise wrong_shape(self._below(name), f"invalid value: integer `{value}`, expected one of its type's range")
        return value

    def unsigned(self, name: str, maximum: int = MAX_UINT32) -> int | None:
        return self.integer(name, 0, maximum)

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings."""
        values = self.items(name)
        if values is None:
            return None
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise wrong_shape(f"{self._below(name)}[{index}]", f"invalid type: {_kind(value)}, expected a string")
        return tuple(values)

    def items(self, name: str) -> list[Any] | None:
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._mismatch(name, "a sequence")
        return value

    def objects(self, name: str) -> list["Fields"] | None:
        values = self.items(name)
        if values is None:
            return None
        return [Fields.of(value, f"{self._below(name)}[{index}]") for index, value in enumerate(values)]

    def object(self, name: str) -> "Fields | None":
        value = self.value(name)
        return None if value is None else Fields.of(value, self._below(name))

    def not_null(self, name: str) -> None:
        """Refuses an explicit null where the field may only be absent."""
        if name in self.values and self.values[name] is None:
            raise self._mismatch(name, "a value")

    def refuse(self, name: str, reason: str) -> RejectedBodyError:
        return wrong_shape(self._below(name), reason)

    def _below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _mismatch(self, name: str, expected: str) -> RejectedBodyError:
        return wrong_shape(self._below(name), f"invalid type: {_kind(self.value(name))}, expected {expected}")


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )


def _kind(value: Any) -> str:
    """The value as the error texts name it."""
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{value}`"
    if isinstance(value, float):
        return f"floating point `{value}`"
    return {type(None): "null", str: "string", list: "sequence"}.get(type(value), "map")
