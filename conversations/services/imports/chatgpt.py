"""Conversations as ChatGPT exports them: a `mapping` of nodes, most of which nobody ever saw."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from conversations.models import Message
from conversations.services.conversations import MOST_TITLE_CHARACTERS
from conversations.services.imports.incoming import Incoming, Node, text_of, time_of
from foundation.text import made_storable, truncated

SOURCE = "chatgpt"
_TEXT_TYPES = {"text", "multimodal_text", "code", ""}
_HIDDEN_CHANNELS = {"analysis"}
_UNFINISHED = {"in_progress", "finished_partial_completion"}
_PLACEHOLDERS = {
    "image_asset_pointer": "[Image]",
    "audio_asset_pointer": "[Audio]",
    "real_time_user_audio_video_asset_pointer": "[Audio]",
    "video_container_asset_pointer": "[Video]",
}


def node_of(key: str, value: Any) -> Node:
    """Return what is kept of one entry of a `mapping`."""
    node = value if isinstance(value, Mapping) else {}
    parent = node.get("parent")
    parent_id = parent if isinstance(parent, str) else None
    message = node.get("message")
    if not isinstance(message, Mapping):
        return Node(key, parent_id)
    content = made_storable(_content_of(message)) if _is_shown(message) else ""
    created_at = time_of(message.get("create_time"))
    if not content.strip():
        return Node(key, parent_id, created_at=created_at)
    role = _role_of(message)
    is_answer = role == Message.Role.ASSISTANT
    status = _status_of(message) if is_answer else Message.Status.COMPLETE
    model = made_storable(text_of(_mapping(message, "metadata").get("model_slug"), 100)) if is_answer else ""
    return Node(key, parent_id, role, content, created_at, status, _finish_reason(message, status, is_answer), model)


def conversation_of(fields: Mapping[str, Any], nodes: list[Node]) -> Incoming:
    """Return the conversation that these nodes are of."""
    title = " ".join(made_storable(text_of(fields.get("title"))).split())
    current = fields.get("current_node")
    return Incoming(
        source=SOURCE,
        source_id=_source_id(fields, nodes),
        nodes=nodes,
        active_id=current if isinstance(current, str) else None,
        title=truncated(title, MOST_TITLE_CHARACTERS),
        is_title_chosen=bool(title),
        archived=fields.get("is_archived") is True,
        pinned=fields.get("is_starred") is True,
        created_at=time_of(fields.get("create_time")),
        updated_at=time_of(fields.get("update_time")),
        joins_turns=True,
    )


def _source_id(fields: Mapping[str, Any], nodes: list[Node]) -> str:
    for name in ("conversation_id", "id"):
        if given := made_storable(text_of(fields.get(name))):
            return given if len(given) <= 255 else sha256(given.encode()).hexdigest()
    # Without an id the conversation is known by what is in it.
    digest = sha256()
    for node in nodes:
        digest.update(repr((node.id, node.content)).encode("utf-8", "replace"))
    return digest.hexdigest()


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Say whether people saw it: neither what tools said nor thoughts, nor what was only for the model."""
    metadata = _mapping(message, "metadata")
    return (
        _author(message) in ("user", "assistant", "")
        and message.get("weight") != 0
        and message.get("recipient") in ("all", "", None)
        and message.get("channel") not in _HIDDEN_CHANNELS
        and metadata.get("is_visually_hidden_from_conversation") is not True
        and text_of(_mapping(message, "content").get("content_type")) in _TEXT_TYPES
    )


def _author(message: Mapping[str, Any]) -> str:
    return text_of(_mapping(message, "author").get("role"))


def _role_of(message: Mapping[str, Any]) -> Message.Role:
    """Return who said it. Where the author is missing, only answers have a model."""
    author = _author(message)
    is_answer = author == "assistant" or (not author and "model_slug" in _mapping(message, "metadata"))
    return Message.Role.ASSISTANT if is_answer else Message.Role.USER


def _content_of(message: Mapping[str, Any]) -> str:
    content = _mapping(message, "content")
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n\n".join(filter(None, map(_part, parts)))
    text = text_of(content.get("text"))
    if content.get("content_type") == "code" and text:
        return f"```{text_of(content.get('language'), 20).replace('unknown', '')}\n{text}\n```"
    return text


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    return text_of(part.get("text")) or _PLACEHOLDERS.get(text_of(part.get("content_type")), "")


def _status_of(message: Mapping[str, Any]) -> Message.Status:
    kind = _mapping(_mapping(message, "metadata"), "finish_details").get("type")
    is_cut_off = text_of(message.get("status")) in _UNFINISHED or kind == "interrupted"
    return Message.Status.CANCELLED if is_cut_off else Message.Status.COMPLETE


def _finish_reason(message: Mapping[str, Any], status: Message.Status, is_answer: bool) -> str:
    if not is_answer:
        return ""
    if status == Message.Status.CANCELLED:
        return "cancelled"
    kind = _mapping(_mapping(message, "metadata"), "finish_details").get("type")
    return "length" if kind == "max_tokens" else "stop"


def _mapping(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}
