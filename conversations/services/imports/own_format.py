"""Conversations as this product exports them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from conversations.models import Message
from conversations.services.conversations import MOST_INSTRUCTION_CHARACTERS, MOST_TITLE_CHARACTERS
from conversations.services.imports.faults import RefusedConversation
from conversations.services.imports.incoming import Incoming, IncomingSummary, Node, number_of, text_of, time_of
from foundation.text import made_storable
from inference.stored_catalog import current_catalog

SOURCE = "chat-export"
_FINISH_REASONS = ("", "stop", "length", "cancelled", "blocked", "error")


def node_of(value: Any) -> Node:
    """Return one of a conversation's `messages`; raise `RefusedConversation` for what cannot be one."""
    if not isinstance(value, Mapping) or not isinstance(value.get("message_id"), str):
        raise RefusedConversation("One of its messages has no message_id.")
    content = value.get("content")
    if value.get("role") not in Message.Role.values or not isinstance(content, str):
        raise RefusedConversation("One of its messages has no content, or is neither a user's nor an assistant's.")
    status, finish_reason = _end_of(value)
    parent, usage = value.get("parent_id"), value.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Node(
        value["message_id"],
        parent if isinstance(parent, str) else None,
        Message.Role(value["role"]),
        made_storable(content),
        time_of(value.get("created_at")),
        status,
        finish_reason,
        made_storable(text_of(value.get("model"), 100)),
        number_of(usage.get("in")),
        number_of(usage.get("cached")),
        number_of(usage.get("out")),
    )


def conversation_of(fields: Mapping[str, Any], nodes: list[Node]) -> Incoming:
    """Return the conversation that these messages are of; raise `RefusedConversation`."""
    active = fields.get("active_message_id")
    instructions = made_storable(text_of(fields.get("instructions")))
    title = made_storable(text_of(fields.get("title")))
    if len(title) > MOST_TITLE_CHARACTERS or len(instructions) > MOST_INSTRUCTION_CHARACTERS:
        raise RefusedConversation("Its title or its instructions are too long.")
    if len({node.id for node in nodes}) != len(nodes):
        raise RefusedConversation("Two of its messages have the same message_id.")
    return Incoming(
        source=SOURCE,
        source_id=_source_id(fields),
        nodes=nodes,
        active_id=active if isinstance(active, str) else None,
        title=title,
        is_title_chosen=fields.get("is_title_chosen") is True,
        model=_known_model(text_of(fields.get("model"))),
        instructions=instructions,
        pinned=fields.get("pinned") is True,
        archived=fields.get("archived") is True,
        created_at=time_of(fields.get("created_at")),
        updated_at=time_of(fields.get("updated_at")),
        summaries=_summaries(fields.get("summaries")),
    )


def _source_id(fields: Mapping[str, Any]) -> str:
    try:
        return str(UUID(text_of(fields.get("conversation_id"))))
    except ValueError:
        raise RefusedConversation("Its conversation_id is missing, or is none.") from None


def _end_of(value: Mapping[str, Any]) -> tuple[Message.Status, str]:
    """Return how a message ended. What was being written then, has been cut off."""
    status, reason = value.get("status"), value.get("finish_reason")
    if status not in Message.Status.values or reason not in _FINISH_REASONS:
        raise RefusedConversation("The status of one of its messages is unknown here.")
    if status in Message.UNDER_WAY:
        return Message.Status.CANCELLED, "cancelled"
    return Message.Status(status), str(reason)


def _known_model(name: str) -> str:
    """Return the model if this site has it: what it has not, could not go on with the conversation."""
    return name if any(model.alias == name for model in current_catalog().models) else ""


def _summaries(value: Any) -> list[IncomingSummary]:
    rows = [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
    return [_summary(each) for each in rows if made_storable(text_of(each.get("text")))]


def _summary(row: Mapping[str, Any]) -> IncomingSummary:
    return IncomingSummary(
        covers_up_to=text_of(row.get("covers_up_to_id")),
        made_for=text_of(row.get("made_for_id")),
        epoch=number_of(row.get("epoch")) or 1,
        text=made_storable(text_of(row.get("text"))),
        model=made_storable(text_of(row.get("model"), 100)),
        created_at=time_of(row.get("created_at")),
    )
