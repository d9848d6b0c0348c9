"""Making, changing and deleting conversations."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from accounts import quotas, usage
from accounts.models import User
from conversations import queries
from conversations.broadcasts import broadcast_soon
from conversations.exceptions import InvalidRequest
from conversations.models import Conversation, Message
from conversations.models_on_offer import check_allowed
from conversations.services import generations
from conversations.services.instructions import check_instructions
from foundation.text import is_storable

MOST_TITLE_CHARACTERS = 200
MOST_INSTRUCTION_CHARACTERS = 20_000
_CHANGEABLE = {"title", "model", "instructions", "pinned", "archived", "active_message_id"}


def create(
    *, user: User, title: str = "", model: str = "", instructions: str = "", temporary: bool = False
) -> Conversation:
    """Make an empty conversation."""
    conversation = new_conversation(user=user, title=title, model=model, instructions=instructions, temporary=temporary)
    check_instructions(instructions, user_id=user.id, model=model)
    conversation.save(force_insert=True)
    tell_changed(conversation)
    return conversation


def new_conversation(
    *, user: User, title: str = "", model: str = "", instructions: str = "", temporary: bool = False
) -> Conversation:
    """Return a conversation that is not saved yet."""
    _check(user, {"title": title, "model": model, "instructions": instructions})
    return Conversation(
        user=user,
        title=title,
        is_title_chosen=bool(title),
        model=model,
        instructions=instructions,
        temporary=temporary,
    )


def change(*, user: User, conversation_id: UUID, changes: dict[str, Any]) -> Conversation:
    """Change some of `title, model, instructions, pinned, archived, active_message_id`.

    A change of the shown branch or of pins is not a change of what was said: it does not move the conversation up.
    """
    conversation = queries.conversation_of(user.id, conversation_id)
    assert changes.keys() <= _CHANGEABLE
    _check(user, changes)
    if "active_message_id" in changes:
        _check_is_part(conversation, changes["active_message_id"])
    if "instructions" in changes or "model" in changes:
        check_instructions(
            changes.get("instructions", conversation.instructions),
            user_id=user.id,
            model=changes.get("model", conversation.model),
            param="instructions" if "instructions" in changes else "model",
        )
    if not changes:
        return conversation
    values = changes | ({"is_title_chosen": bool(changes["title"])} if "title" in changes else {})
    Conversation.objects.owned_by(user.id).filter(pk=conversation_id).update(
        **values, context_version=F("context_version") + 1
    )
    # Read again: it may have been changed elsewhere, or deleted, which this tells.
    conversation = queries.conversation_of(user.id, conversation_id)
    tell_changed(conversation)
    return conversation


def delete(*, user: User, conversation_id: UUID) -> None:
    """Delete a conversation and all that belongs to it. Answers being written are stopped first."""
    conversation = queries.conversation_of(user.id, conversation_id)
    under_way = list(conversation.generations.under_way().values_list("pk", flat=True))
    for generation_id in under_way:
        generations.request_cancel(generation_id)
    with transaction.atomic():
        Conversation.objects.select_for_update().filter(pk=conversation_id).first()
        erase(conversation)


def erase(conversation: Conversation) -> dict[str, int]:
    """Delete a conversation whose row the transaction has locked; return how many rows went, by their model's label."""
    conversation_id = conversation.id
    # In the order of the ids, as workers lock them.
    rows = conversation.generations.select_for_update().order_by("pk").values_list("pk", "status")
    status_by_id = dict(rows)
    list(conversation.errands.select_for_update().order_by("pk").values_list("pk", flat=True))
    _, counts = conversation.delete()
    _give_back(conversation.user_id, [pk for pk, status in status_by_id.items() if status == Message.Status.QUEUED])
    transaction.on_commit(lambda: generations.forget_streams(status_by_id), robust=True)
    _tell(conversation, "conversation_deleted", conversation_id=conversation_id)
    return counts


def _give_back(user_id: UUID, waiting: Sequence[UUID]) -> None:
    """Return what is kept for answers that nobody writes. What is being written is settled by its worker."""
    settled = usage.settle_orphans(waiting) if waiting else []
    for generation_id in settled:
        transaction.on_commit(partial(quotas.settled, user_id, generation_id, tokens_used=0), robust=True)


def tell_changed(conversation: Conversation) -> None:
    """Tell the user's other pages, once it is committed, that a conversation was made or changed."""
    _tell(conversation, "conversation_changed")


def _check(user: User, values: dict[str, Any]) -> None:
    for name, most in (("title", MOST_TITLE_CHARACTERS), ("instructions", MOST_INSTRUCTION_CHARACTERS)):
        text = values.get(name) or ""
        if len(text) > most:
            raise InvalidRequest(f"{name} has {len(text):,} characters; {most:,} are allowed.", param=name)
        if not is_storable(text):
            raise InvalidRequest(f"{name} contains a NUL or a lone surrogate; remove it.", param=name)
    if values.get("model"):
        check_allowed(values["model"], user.tier)


def _check_is_part(conversation: Conversation, message_id: UUID | None) -> None:
    if message_id is not None and not Message.objects.filter(pk=message_id, conversation=conversation).exists():
        raise InvalidRequest("active_message_id must name a message of this conversation.", param="active_message_id")


def _tell(conversation: Conversation, kind: str, **data: Any) -> None:
    data.setdefault("conversation_id", conversation.id)
    user_id = conversation.user_id
    transaction.on_commit(lambda: broadcast_soon(user_id, kind, **data), robust=True)
