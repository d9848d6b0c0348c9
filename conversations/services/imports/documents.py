"""Reads the conversations of a JSON document one after another; one that is refused costs the others nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from conversations.services.imports import chatgpt, own_format
from conversations.services.imports.cleaned_json import CleanedJSON
from conversations.services.imports.containers import Document
from conversations.services.imports.faults import RefusedConversation, UnreadableFile
from conversations.services.imports.incoming import Incoming, Node
from conversations.services.imports.json_events import MOST_DEPTH, Event, JSONEvents, Meter, build

_MOST_NODE_BYTES = 16_000_000
_MOST_CONVERSATION_BYTES = 200_000_000
_NODE_BYTES = 500
_UNKNOWN = "There are no conversations in this file. Upload an export of this site or of ChatGPT."
_TOO_NEW = "This export was made by a newer version of this site, which writes it in a way that is unknown here."


@dataclass(frozen=True, slots=True)
class Refused:
    """A conversation that cannot be imported, and why."""

    title: str
    reason: str


@dataclass(slots=True)
class _Parts:
    """What has been read of one conversation."""

    fields: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    meter: Meter = field(default_factory=lambda: Meter(_MOST_CONVERSATION_BYTES))


def conversations(document: Document, tick: Callable[[], None]) -> Iterator[Incoming | Refused]:
    """Yield what is in a document. Raise `UnreadableFile`, perhaps only after some conversations."""
    with document.opened() as file:
        events = JSONEvents(CleanedJSON(file, tick))
        for kind, _ in events:
            match kind:
                case "start_array":
                    yield from _listed(events)
                case "start_map":
                    yield from _of_object(events)
                case _:
                    raise UnreadableFile(_UNKNOWN)


def _listed(events: JSONEvents) -> Iterator[Incoming | Refused]:
    depth = events.depth
    for event in events:
        if event[0] == "end_array" and events.depth < depth:
            return
        yield _conversation(event, events)


def _of_object(events: JSONEvents) -> Iterator[Incoming | Refused]:
    """Yield the `conversations` of an object, or the one conversation that it is."""
    parts, depth, has_list, fault = _Parts(), events.depth, False, None
    for kind, name in events:
        if kind == "end_map":
            break
        event = next(events)
        if name == "conversations" and event[0] == "start_array" and not has_list:
            _check_version(parts.fields)
            has_list = True
            yield from _listed(events)
            continue
        try:
            _read_field(name, event, events, parts)
        except RefusedConversation as error:
            fault = fault or str(error)
            events.skip_to(depth)
    if has_list:
        return
    if not {"mapping", "messages"} & parts.fields.keys():
        raise UnreadableFile(_UNKNOWN)
    yield Refused(_title(parts.fields), fault) if fault else _whole(parts)


def _check_version(fields: dict[str, Any]) -> None:
    version = fields.get("version")
    if fields.get("format") == "chat-export" and isinstance(version, int) and version > 1:
        raise UnreadableFile(_TOO_NEW)


def _conversation(event: Event, events: JSONEvents) -> Incoming | Refused:
    """Read one conversation, whatever its faults, up to its end."""
    parts, depth = _Parts(), events.depth - 1
    if event[0] != "start_map":
        if event[0] == "start_array":
            events.skip_to(depth)
        return Refused("", "It is not a conversation.")
    try:
        for kind, name in events:
            if kind == "end_map":
                break
            if name in parts.fields:
                raise RefusedConversation(f"It names {name[:50]!r} twice.")
            _read_field(name, next(events), events, parts)
    except RefusedConversation as error:
        events.skip_to(depth)
        return Refused(_title(parts.fields), str(error))
    return _whole(parts)


def _whole(parts: _Parts) -> Incoming | Refused:
    try:
        if "mapping" in parts.fields:
            return chatgpt.conversation_of(parts.fields, parts.nodes)
        if "messages" in parts.fields:
            return own_format.conversation_of(parts.fields, parts.nodes)
    except RefusedConversation as error:
        return Refused(_title(parts.fields), str(error))
    return Refused(_title(parts.fields), "It is not a conversation.")


def _read_field(name: str, event: Event, events: JSONEvents, parts: _Parts) -> None:
    """Keep a field. Messages are cut down to what is needed as they come: whole, they take many times the room."""
    parts.meter.take(len(name))
    parts.fields[name] = None
    if name == "mapping" and event[0] == "start_map":
        _read_mapping(events, parts)
    elif name == "messages" and event[0] == "start_array":
        _read_messages(events, parts)
    else:
        parts.fields[name] = build(event, events, parts.meter, deepest=events.depth + MOST_DEPTH)


def _read_mapping(events: JSONEvents, parts: _Parts) -> None:
    for kind, key in events:
        if kind == "end_map":
            return
        _keep(chatgpt.node_of(key, _node(next(events), events)), parts)


def _read_messages(events: JSONEvents, parts: _Parts) -> None:
    for event in events:
        if event[0] == "end_array":
            return
        _keep(own_format.node_of(_node(event, events)), parts)


def _node(event: Event, events: JSONEvents) -> Any:
    return build(event, events, Meter(_MOST_NODE_BYTES), deepest=events.depth + MOST_DEPTH)


def _keep(node: Node, parts: _Parts) -> None:
    parts.meter.take(_NODE_BYTES + len(node.content))
    parts.nodes.append(node)


def _title(fields: dict[str, Any]) -> str:
    title = fields.get("title")
    return title if isinstance(title, str) else ""
