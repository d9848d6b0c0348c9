"""Sending a message, and asking for another answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from django.conf import settings

from accounts.models import User
from conversations import queries
from conversations.exceptions import ContentTooLong, GenerationInProgress, InvalidRequest, NotFound
from conversations.models import Conversation, Message
from conversations.models_on_offer import alias_to_use
from conversations.services import memories
from conversations.services.answer_requests import (
    AnswerRequest,
    NewIds,
    Sent,
    locked_conversation,
    model_wanted_for,
    request_once,
)
from conversations.services.conversations import new_conversation
from conversations.services.idempotency import digest_of
from conversations.services.size_check import check_fits
from foundation.text import is_storable


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What a user says. `parent` is the answer that it follows: the active branch's last, a given one, or none."""

    content: str
    model: str | None = None
    parent: UUID | Literal["active"] | None = "active"
    options: Mapping[str, Any] = field(default_factory=dict)
    is_background: bool = False
    is_temporary: bool = False
    """Whether the conversation that it begins is temporary; means nothing in one that is there."""


def send(*, user: User, conversation_id: UUID | None, message: NewMessage, idempotency_key: str | None = None) -> Sent:
    """Store a message and its empty answer, and have the answer written. When this returns, both are durable.

    Without a `conversation_id` a new conversation is made. The same `idempotency_key` and message return the first
    call's result. Raise `NotFound`, `InvalidRequest`, `ContentTooLong`, `GenerationInProgress`, `IdempotencyConflict`,
    `Overloaded`, `UnknownModel`, and what `quotas.reserve` raises.
    """
    _check_content(message.content)
    check_fits(
        user=user,
        conversation_id=conversation_id,
        content=message.content,
        model=message.model,
        options=message.options,
    )
    digest = digest_of("send", conversation_id, message)
    asked = memories.asked_in(message.content, user=user)

    def prepare(ids: NewIds) -> AnswerRequest:
        conversation = _conversation_to_write(user, conversation_id, message)
        model = alias_to_use(message.model or conversation.model, user.tier)
        parent = _parent_in(conversation, message.parent)
        question = Message(
            id=ids.question, conversation=conversation, parent=parent, role=Message.Role.USER, content=message.content
        )
        notices = memories.remember(asked, user=user, question=question)
        return AnswerRequest(question, model, message.options, message.is_background, notices)

    return request_once(user, idempotency_key, digest, prepare)


def regenerate(*, user: User, message_id: UUID, model: str | None = None, idempotency_key: str | None = None) -> Sent:
    """Have another answer written beside an existing one (or to a user message). Raises what `send` raises."""
    digest = digest_of("regenerate", message_id, model)

    def prepare(ids: NewIds) -> AnswerRequest:
        message = queries.message_of(user.id, message_id)
        conversation = locked_conversation(user, message.conversation_id)
        message.refresh_from_db()
        if message.is_under_way:
            raise GenerationInProgress("This answer is still being written; stop it, or wait for its end.")
        follows = message if message.role == Message.Role.USER else message.parent
        if follows is None:
            raise InvalidRequest("This answer follows no message, so it cannot be written again.", param="message_id")
        chosen = alias_to_use(model or model_wanted_for(message) or conversation.model, user.tier)
        follows.conversation = conversation
        return AnswerRequest(follows, chosen)

    return request_once(user, idempotency_key, digest, prepare)


def _conversation_to_write(user: User, conversation_id: UUID | None, message: NewMessage) -> Conversation:
    if conversation_id is not None:
        return locked_conversation(user, conversation_id)
    return new_conversation(user=user, model=message.model or "", temporary=message.is_temporary)


def _parent_in(conversation: Conversation, parent: UUID | Literal["active"] | None) -> Message | None:
    if parent is None:
        return None
    if parent == "active":
        found = conversation.active_message or conversation.messages.order_by("-id").first()
        if found is not None and found.role == Message.Role.USER:
            # The branch was set to end in a question: what is said next follows its newest answer, to that one's end.
            found = _newest_answer_to(found) or found
    else:
        found = Message.objects.filter(pk=parent, conversation=conversation).first()
        if found is None:
            raise NotFound("parent_id names no message of this conversation.", param="parent_id")
        if found.role == Message.Role.USER:
            raise InvalidRequest(
                "parent_id must name an answer, or be null for a new first message.", param="parent_id"
            )
    if found is not None and found.is_under_way:
        raise GenerationInProgress("An answer is still being written here; stop it, or wait for its end.")
    return found


def _newest_answer_to(message: Message) -> Message | None:
    """Return the newest answer to a question, or what continues an answer; of several parts, the last."""
    # Ids grow along a path: a damaged tree's circle ends.
    answers = message.children.filter(role=Message.Role.ASSISTANT, id__gt=message.id)
    newest = answers.order_by("-id").first()
    return newest and (_newest_answer_to(newest) or newest)


def _check_content(content: str) -> None:
    if not is_storable(content):
        raise InvalidRequest("content contains a NUL or a lone surrogate; remove it.", param="content")
    if not content.strip():
        raise InvalidRequest("content is empty; say something.", param="content")
    length, most = len(content), settings.MAX_MESSAGE_CHARACTERS
    if length > most:
        raise ContentTooLong(
            f"The message has {length:,} characters; {most:,} are allowed: {length - most:,} too many.",
            param="content",
            details={"characters": length, "limit": most, "over": length - most},
        )
