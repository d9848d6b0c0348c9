"""Writes JSON piece by piece."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson


def text(value: Any) -> str:
    """Return a value as JSON; times as RFC 3339 has them, ids and exact numbers as strings."""
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z).decode()


def array(items: Iterable[str]) -> Iterator[str]:
    """Yield an array, a line for each item, whose JSON is given."""
    yield "["
    separator = "\n"
    for item in items:
        yield separator + item
        separator = ",\n"
    yield "\n]"


def document(value: Any) -> Iterator[str]:
    """Yield a small document, indented for people."""
    yield orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_INDENT_2).decode() + "\n"
