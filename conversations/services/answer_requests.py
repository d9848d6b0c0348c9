"""Having an answer written: asked at the door, counted, stored with all that belongs to it, queued."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from accounts import quotas
from accounts.models import User
from accounts.quotas import Allowance, Wish
from conversations.broadcasts import broadcast_soon
from conversations.context.titles import first_words
from conversations.exceptions import NotFound
from conversations.exchanges import question_id_of
from conversations.models import Conversation, Generation, Message
from conversations.services import generations, idempotency
from conversations.services.admission import Admission, admit, deadline_after, leave
from conversations.services.reservations import most_tokens
from foundation.ids import new_id
from foundation.statements import change, insertion, write_together
from inference.jobs import Job, estimated_tokens
from inference.overload import FALLBACK_MODEL

_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request made, or, for a repeated call, had made. `follows` is what the answer follows."""

    conversation: Conversation
    follows: Message
    answer: Message
    generation: Generation
    allowance: Allowance
    is_repeat: bool


@dataclass(frozen=True, slots=True)
class NewIds:
    """Ids in the order of the messages, because messages are listed by their ids."""

    question: UUID
    answer: UUID


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What the answer follows, and how it was asked for. A new question, or conversation, is not stored yet.

    `follows` is the question, or an answer that is to be continued. `notices` are codes that the reader is told.
    """

    follows: Message
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_background: bool = False
    notices: tuple[str, ...] = ()


def locked_conversation(user: User, conversation_id: UUID) -> Conversation:
    """Return the user's conversation; until the commit, no other message can join it. Raise `NotFound`."""
    found = Conversation.objects.owned_by(user.id).select_related("active_message").filter(pk=conversation_id)
    conversation = found.select_for_update(of=("self",)).first()
    if conversation is None:
        raise NotFound("There is no such conversation.", param="conversation_id")
    return conversation


def model_wanted_for(message: Message) -> str:
    """Return the model that a message's answer was asked of; empty where a smaller one stood in for it under load."""
    stood_in = Generation.objects.filter(pk=message.pk, notices__contains=[FALLBACK_MODEL]).exists()
    return "" if stood_in else message.model


def request_once(user: User, key: str | None, digest: bytes, prepare: Callable[[NewIds], AnswerRequest]) -> Sent:
    """Ask at the door, reserve, write and commit; or find what the same idempotency key has made before.

    `prepare` runs within the transaction. Raise what it raises, `IdempotencyConflict`, `InvalidRequest`, `Overloaded`,
    `UnknownModel`, and what `quotas.reserve` raises.
    """
    if key is not None:
        idempotency.check_key(key)
    ids = NewIds(new_id(), new_id())
    admission: Admission | None = None
    allowance: Allowance | None = None
    try:
        with transaction.atomic():
            made = idempotency.made_before(user, key, digest) if key is not None else None
            if made is None:
                request = prepare(ids)
                admission = admit(user, ids.answer, request.model, request.options)
                allowance = quotas.reserve(user, _wish(user, ids.answer, request, admission))
                generation = _write(user, ids.answer, request, admission)
                if key is not None:
                    idempotency.keep(user, key, digest, generation)
    except BaseException:
        if allowance is not None:
            quotas.release(user.pk, ids.answer)
        if admission is not None:
            leave(admission)
        raise
    if made is not None:
        return _sent(made, quotas.peek(user, made.model), is_repeat=True)
    assert allowance is not None
    return _sent(generation, allowance, is_repeat=False)


def _wish(user: User, generation_id: UUID, request: AnswerRequest, admission: Admission) -> Wish:
    most = most_tokens(user, request.follows, admission.model, max_answer_tokens=admission.options["max_tokens"])
    return Wish(generation_id, admission.model, most)


def _write(user: User, generation_id: UUID, request: AnswerRequest, admission: Admission) -> Generation:
    """Insert the empty answer with its generation, and the question where it is new; show this branch."""
    follows, conversation = request.follows, request.follows.conversation
    answer = Message(
        id=generation_id,
        conversation=conversation,
        parent=follows,
        role=Message.Role.ASSISTANT,
        status=Message.Status.QUEUED,
        model=admission.model,
    )
    generation = _queued_generation(user, answer, request, admission)
    _store(follows, answer, generation)
    job = _job(generation, len(follows.content))
    transaction.on_commit(lambda: generations.enqueue([job]), robust=True)
    transaction.on_commit(lambda: _tell_others(answer), robust=True)
    return generation


def _queued_generation(user: User, answer: Message, request: AnswerRequest, admission: Admission) -> Generation:
    priority_class = user.tier.priority_class
    return Generation(
        message=answer,
        conversation=answer.conversation,
        user=user,
        priority_class=priority_class,
        model=admission.model,
        options=admission.options,
        notices=[*admission.notices, *request.notices],
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


def _store(follows: Message, answer: Message, generation: Generation) -> None:
    """Write all of it in one statement, and show this branch. The question is its title where there is none."""
    conversation = answer.conversation
    if not conversation.title and follows.role == Message.Role.USER:
        conversation.title = first_words(follows.content, _TITLE_CHARACTERS)
    conversation.active_message = answer
    conversation.updated_at = answer.created_at
    new_messages = [follows, answer] if follows._state.adding else [answer]
    write_together(
        insertion(new_messages),
        insertion([generation]),
        insertion([conversation])
        if conversation._state.adding
        else change(conversation, ["title", "active_message", "updated_at"]),
    )
    for row in (*new_messages, generation, conversation):
        row._state.adding = False


def _tell_others(answer: Message) -> None:
    broadcast_soon(
        answer.conversation.user_id,
        "message_added",
        conversation_id=answer.conversation_id,
        user_message_id=question_id_of(answer),
        message_id=answer.id,
        generation_id=answer.id,
    )


def _sent(generation: Generation, allowance: Allowance, *, is_repeat: bool) -> Sent:
    answer = generation.message
    assert answer.parent is not None
    return Sent(generation.conversation, answer.parent, answer, generation, allowance, is_repeat)
