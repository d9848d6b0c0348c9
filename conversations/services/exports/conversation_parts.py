"""`conversations.json`: conversations with all their branches, as `POST /v1/imports` reads them back."""

from collections.abc import Iterator
from typing import Any

from django.db.models import F
from django.utils import timezone

from accounts.models import User
from conversations.models import Conversation, Message, Summary
from conversations.services.exports import json_text

FORMAT = "chat-export"
VERSION = 1
_ROWS_AT_ONCE = 200
_MESSAGE_FIELDS = ("parent_id", "role", "content", "status", "finish_reason", "model", "created_at")
_CONVERSATION_FIELDS = (
    "title",
    "is_title_chosen",
    "model",
    "instructions",
    "pinned",
    "archived",
    "active_message_id",
    "created_at",
    "updated_at",
)
_SUMMARY_FIELDS = ("covers_up_to_id", "made_for_id", "epoch", "text", "model", "created_at")


def conversations(user: User) -> Iterator[str]:
    """Yield the document."""
    head = {"format": FORMAT, "version": VERSION, "exported_at": timezone.now()}
    yield json_text.text(head)[:-1] + ',"conversations":'
    separator = "[\n"
    for conversation in kept_conversations(user):
        yield separator
        yield from _conversation(conversation)
        separator = ",\n"
    yield "]}\n" if separator != "[\n" else "[]}\n"


def kept_conversations(user: User) -> Iterator[Conversation]:
    """Yield the user's conversations, oldest first, without temporary ones."""
    kept = Conversation.objects.owned_by(user.pk).filter(temporary=False)
    return kept.order_by("pk").iterator(chunk_size=_ROWS_AT_ONCE)


def _conversation(conversation: Conversation) -> Iterator[str]:
    fields: dict[str, Any] = {"conversation_id": conversation.pk}
    fields |= {name: getattr(conversation, name) for name in _CONVERSATION_FIELDS}
    yield json_text.text(fields)[:-1] + ',"messages":'
    yield from json_text.array(_messages(conversation))
    yield ',"summaries":'
    yield from json_text.array(_summaries(conversation))
    yield "}"


def _messages(conversation: Conversation) -> Iterator[str]:
    rows = Message.objects.filter(conversation=conversation).order_by("pk")
    named = rows.values(
        *_MESSAGE_FIELDS,
        "tokens_in",
        "tokens_cached",
        "tokens_out",
        message_id=F("pk"),
        error=F("generation__error_code"),
    )
    for row in named.iterator(chunk_size=_ROWS_AT_ONCE):
        usage = {"in": row.pop("tokens_in"), "cached": row.pop("tokens_cached"), "out": row.pop("tokens_out")}
        is_answer = row["role"] == Message.Role.ASSISTANT
        row["error"] = row["error"] or None
        yield json_text.text(row | {"usage": usage if is_answer else None})


def _summaries(conversation: Conversation) -> Iterator[str]:
    rows = Summary.objects.filter(conversation=conversation).order_by("pk").values(*_SUMMARY_FIELDS)
    return (json_text.text(row) for row in rows.iterator(chunk_size=_ROWS_AT_ONCE))
