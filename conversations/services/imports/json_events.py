"""A JSON document as events, and values built of them within bounds. Nothing recurses deeper than the bounds."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import ijson

from conversations.services.imports.cleaned_json import CleanedJSON
from conversations.services.imports.faults import RefusedConversation, UnreadableFile

MOST_DEPTH = 50
"""Within a conversation; what goes deeper, no export has."""
_NO_JSON = "This is not valid JSON, or it breaks off: {}. Download the export once more."
_VALUE_COST = 100
"""What a value costs in memory beside its text, roughly."""

type Event = tuple[str, Any]


class JSONEvents:
    """The events of a document. `depth` counts the containers that are open."""

    def __init__(self, file: CleanedJSON) -> None:
        self._events: Iterator[Event] = ijson.basic_parse(file)
        self.depth = 0

    def __iter__(self) -> "JSONEvents":
        return self

    def __next__(self) -> Event:
        try:
            event: Event = next(self._events)
        except (ijson.JSONError, ValueError) as error:
            raise UnreadableFile(_NO_JSON.format(_reason(error))) from error
        if event[0] in ("start_map", "start_array"):
            self.depth += 1
        elif event[0] in ("end_map", "end_array"):
            self.depth -= 1
        return event

    def skip_to(self, depth: int) -> None:
        """Pass over what is left of the containers that are deeper."""
        while self.depth > depth:
            next(self)


class Meter:
    """How much memory values may take, roughly in bytes."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise RefusedConversation("It is too large.")


def build(event: Event, events: JSONEvents, meter: Meter, *, deepest: int) -> Any:
    """Return the value that begins with an event; raise `RefusedConversation` where it goes beyond the bounds."""
    kind, value = event
    if kind == "start_map":
        return _build_map(events, meter, deepest)
    if kind == "start_array":
        return _build_array(events, meter, deepest)
    meter.take(_VALUE_COST + (len(value) if isinstance(value, str) else 0))
    return float(value) if isinstance(value, Decimal) else value


def _build_map(events: JSONEvents, meter: Meter, deepest: int) -> dict[str, Any]:
    _check_depth(events, deepest)
    built: dict[str, Any] = {}
    for kind, name in events:
        if kind == "end_map":
            break
        meter.take(_VALUE_COST + len(name))
        built[name] = build(next(events), events, meter, deepest=deepest)
    return built


def _build_array(events: JSONEvents, meter: Meter, deepest: int) -> list[Any]:
    _check_depth(events, deepest)
    built: list[Any] = []
    for event in events:
        if event[0] == "end_array":
            break
        meter.take(_VALUE_COST)
        built.append(build(event, events, meter, deepest=deepest))
    return built


def _check_depth(events: JSONEvents, deepest: int) -> None:
    if events.depth > deepest:
        raise RefusedConversation("Its values are nested too deeply.")


def _reason(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    line = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).strip().splitlines()
    return (line[0] if line else "unreadable").removesuffix(".")
