"""Sending a message, and asking for another answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts import quotas
from accounts.models import User
from accounts.quotas import RequestAllowance
from conversations import queries
from conversations.broadcasts import broadcast_soon
from conversations.exceptions import (
    ContentTooLong,
    GenerationInProgress,
    InvalidRequest,
    NotFound,
)
from conversations.models import Conversation, Generation, Message
from conversations.models_on_offer import alias_to_use
from conversations.services import generations, idempotency
from conversations.services.admission import Admission, admit, deadline_after, leave
from conversations.services.conversations import new_conversation
from conversations.services.idempotency import digest_of
from foundation.ids import new_id
from foundation.statements import change, insertion, write_together
from foundation.text import is_storable, truncated
from inference.jobs import Job, estimated_tokens
from inference.overload import FALLBACK_MODEL

_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What a user says. `parent` is the answer that it follows: the active branch's last, a given one, or none."""

    content: str
    model: str | None = None
    parent: UUID | Literal["active"] | None = "active"
    options: Mapping[str, Any] = field(default_factory=dict)
    is_background: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What sending made, or, for a repeated call, had made."""

    conversation: Conversation
    user_message: Message
    answer: Message
    generation: Generation
    allowance: RequestAllowance
    is_repeat: bool


@dataclass(frozen=True, slots=True)
class _NewIds:
    """Ids in the order of the messages, because messages are listed by their ids."""

    question: UUID
    answer: UUID


@dataclass(frozen=True, slots=True)
class _Request:
    """What is to be answered, and how that was asked for. A new question, or conversation, is not stored yet."""

    question: Message
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_background: bool = False


def send(*, user: User, conversation_id: UUID | None, message: NewMessage, idempotency_key: str | None = None) -> Sent:
    """Store a message and its empty answer, and have the answer written. When this returns, both are durable.

    Without a `conversation_id` a new conversation is made. The same `idempotency_key` and message return the first
    call's result. Raise `NotFound`, `InvalidRequest`, `ContentTooLong`, `GenerationInProgress`, `IdempotencyConflict`,
    `Overloaded`, `RequestsExceeded`, `UnknownModel`.
    """
    _check_content(message.content)
    digest = digest_of("send", conversation_id, message)

    def prepare(ids: _NewIds) -> _Request:
        conversation = _conversation_to_write(user, conversation_id, message)
        model = alias_to_use(message.model or conversation.model)
        parent = _parent_in(conversation, message.parent)
        question = Message(
            id=ids.question, conversation=conversation, parent=parent, role=Message.Role.USER, content=message.content
        )
        return _Request(question, model, message.options, message.is_background)

    return _once(user, idempotency_key, digest, prepare)


def regenerate(*, user: User, message_id: UUID, model: str | None = None, idempotency_key: str | None = None) -> Sent:
    """Have another answer written beside an existing one (or to a user message). Raises what `send` raises."""
    digest = digest_of("regenerate", message_id, model)

    def prepare(ids: _NewIds) -> _Request:
        message = queries.message_of(user.id, message_id)
        conversation = _locked(user, message.conversation_id)
        message.refresh_from_db()
        if message.is_under_way:
            raise GenerationInProgress("This answer is still being written; stop it, or wait for its end.")
        question = message if message.role == Message.Role.USER else message.parent
        if question is None:
            raise InvalidRequest("This answer follows no message, so it cannot be written again.", param="message_id")
        chosen = alias_to_use(model or _model_wanted_for(message) or conversation.model)
        question.conversation = conversation
        return _Request(question, chosen)

    return _once(user, idempotency_key, digest, prepare)


def _model_wanted_for(message: Message) -> str:
    """Return the model that a message's answer was asked of; empty where a smaller one stood in for it under load."""
    stood_in = Generation.objects.filter(pk=message.pk, notices__contains=[FALLBACK_MODEL]).exists()
    return "" if stood_in else message.model


def _once(user: User, key: str | None, digest: bytes, prepare: Callable[[_NewIds], _Request]) -> Sent:
    """Ask at the door, reserve, write and commit; or find what the same key has made before."""
    if key is not None:
        idempotency.check_key(key)
    ids = _NewIds(new_id(), new_id())
    admission: Admission | None = None
    allowance: RequestAllowance | None = None
    try:
        with transaction.atomic():
            made = idempotency.made_before(user, key, digest) if key is not None else None
            if made is None:
                request = prepare(ids)
                admission = admit(user, ids.answer, request.model, request.options)
                allowance = quotas.reserve_request(
                    user.pk, user.tier, request_id=ids.answer, requests_under_way=_requests_under_way
                )
                generation = _write(user, ids.answer, request, admission)
                if key is not None:
                    idempotency.keep(user, key, digest, generation)
    except BaseException:
        if allowance is not None:
            quotas.release_request(user.pk, allowance)
        if admission is not None:
            leave(admission)
        raise
    if made is not None:
        return _sent(made, quotas.peek(user.pk, user.tier), is_repeat=True)
    assert allowance is not None
    return _sent(generation, allowance, is_repeat=False)


def _write(user: User, generation_id: UUID, request: _Request, admission: Admission) -> Generation:
    """Insert the empty answer with its generation, and the question where it is new; show this branch."""
    question, conversation = request.question, request.question.conversation
    answer = Message(
        id=generation_id,
        conversation=conversation,
        parent=question,
        role=Message.Role.ASSISTANT,
        status=Message.Status.QUEUED,
        model=admission.model,
    )
    generation = _queued_generation(user, answer, request, admission)
    _store(question, answer, generation)
    job = _job(generation, len(question.content))
    transaction.on_commit(lambda: generations.enqueue([job]), robust=True)
    transaction.on_commit(lambda: _tell_others(user.id, conversation.id, question.id, answer.id), robust=True)
    return generation


def _queued_generation(user: User, answer: Message, request: _Request, admission: Admission) -> Generation:
    priority_class = user.tier.priority_class
    return Generation(
        message=answer,
        conversation=answer.conversation,
        user=user,
        priority_class=priority_class,
        model=admission.model,
        options=admission.options,
        notices=list(admission.notices),
        is_background=request.is_background,
        queued_at=answer.created_at,
        enqueued_at=answer.created_at,
        deadline=answer.created_at + deadline_after(priority_class),
    )


def _job(generation: Generation, characters: int) -> Job:
    return Job(
        generation.pk,
        generation.priority_class,
        generation.model,
        generation.user_id,
        generation.deadline,
        estimated_tokens(characters, generation.options["max_tokens"]),
    )


def _store(question: Message, answer: Message, generation: Generation) -> None:
    """Write all of it in one statement, and show this branch. The question is its title where there is none."""
    conversation = answer.conversation
    if not conversation.title:
        conversation.title = truncated(" ".join(question.content.split()), _TITLE_CHARACTERS)
    conversation.active_message = answer
    conversation.updated_at = answer.created_at
    new_messages = [question, answer] if question._state.adding else [answer]
    write_together(
        insertion(new_messages),
        insertion([generation]),
        insertion([conversation])
        if conversation._state.adding
        else change(conversation, ["title", "active_message", "updated_at"]),
    )
    for row in (*new_messages, generation, conversation):
        row._state.adding = False


def _tell_others(user_id: UUID, conversation_id: UUID, user_message_id: UUID, message_id: UUID) -> None:
    broadcast_soon(
        user_id,
        "message_added",
        conversation_id=conversation_id,
        user_message_id=user_message_id,
        message_id=message_id,
        generation_id=message_id,
    )


def _conversation_to_write(user: User, conversation_id: UUID | None, message: NewMessage) -> Conversation:
    if conversation_id is not None:
        return _locked(user, conversation_id)
    return new_conversation(user=user, model=message.model or "")


def _locked(user: User, conversation_id: UUID) -> Conversation:
    """Return the conversation; until the commit, no other message can join it."""
    found = Conversation.objects.owned_by(user.id).select_related("active_message").filter(pk=conversation_id)
    conversation = found.select_for_update(of=("self",)).first()
    if conversation is None:
        raise NotFound("There is no such conversation.", param="conversation_id")
    return conversation


def _parent_in(conversation: Conversation, parent: UUID | Literal["active"] | None) -> Message | None:
    if parent is None:
        return None
    if parent == "active":
        found = conversation.active_message or conversation.messages.order_by("-id").first()
        if found is not None and found.role == Message.Role.USER:
            # The branch was set to end in a question: what is said next follows its newest answer.
            found = found.children.order_by("-id").first()
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


def _check_content(content: str) -> None:
    if not is_storable(content):
        raise InvalidRequest("content contains a NUL or a lone surrogate; remove it.", param="content")
    if not content.strip():
        raise InvalidRequest("content is empty; say something.", param="content")
    if len(content) > settings.MAX_MESSAGE_CHARACTERS:
        raise ContentTooLong(
            f"The message has {len(content):,} characters; {settings.MAX_MESSAGE_CHARACTERS:,} are allowed.",
            param="content",
        )


def _requests_under_way(user_id: UUID) -> list[UUID]:
    return [generation.pk for generation in queries.under_way_of(user_id)]


def _sent(generation: Generation, allowance: RequestAllowance, *, is_repeat: bool) -> Sent:
    answer = generation.message
    assert answer.parent is not None
    return Sent(generation.conversation, answer.parent, answer, generation, allowance, is_repeat)
