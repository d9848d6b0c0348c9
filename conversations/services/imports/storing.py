"""Stores one conversation of a file: all of it or nothing, and none of them twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import batched
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from conversations.models import Conversation, Import, ImportedConversation, Message, Summary
from conversations.services.imports import own_format
from conversations.services.imports.faults import RefusedConversation
from conversations.services.imports.incoming import Incoming, Node
from conversations.services.imports.tree import Tree, tree_of
from foundation.ids import new_id

_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a conversation is now. `is_new` says whether this import brought it, now or before it was interrupted."""

    conversation_id: UUID
    is_new: bool


def store(incoming: Incoming, bringing: Import) -> Stored:
    """Store a conversation unless it is there. Raise `RefusedConversation`."""
    if found := _already_there(incoming, bringing):
        return found
    tree = tree_of(incoming)
    if not tree.nodes and incoming.source != own_format.SOURCE:
        raise RefusedConversation("It has no message to show.")
    try:
        with transaction.atomic():
            return Stored(_store(incoming, tree, bringing).pk, is_new=True)
    except IntegrityError:
        # Another import of the same user's has just brought it.
        if found := _already_there(incoming, bringing):
            return found
        raise


def _already_there(incoming: Incoming, bringing: Import) -> Stored | None:
    origins = ImportedConversation.objects.filter(user_id=bringing.user_id, source=incoming.source)
    origin = origins.filter(source_id=incoming.source_id).first()
    if origin is not None:
        return Stored(origin.conversation_id, is_new=origin.brought_by_id == bringing.pk)
    if incoming.source != own_format.SOURCE:
        return None
    original = Conversation.objects.owned_by(bringing.user_id).filter(pk=incoming.source_id).first()
    return Stored(original.pk, is_new=False) if original else None


def _store(incoming: Incoming, tree: Tree, bringing: Import) -> Conversation:
    conversation = _conversation(incoming, tree, bringing.user_id)
    conversation.save(force_insert=True)
    ImportedConversation.objects.create(
        user_id=bringing.user_id,
        conversation=conversation,
        source=incoming.source,
        source_id=incoming.source_id,
        brought_by=bringing,
    )
    # Ids of their own, in the tree's order: those of the file may be anybody's.
    ids = dict(zip((node.id for node in tree.nodes), sorted(new_id() for _ in tree.nodes), strict=True))
    for some in batched(_messages(conversation, tree.nodes, ids), _ROWS_AT_ONCE, strict=False):
        Message.objects.bulk_create(some)
    Summary.objects.bulk_create(_summaries(conversation, incoming, ids), _ROWS_AT_ONCE)
    if tree.active_id is not None:
        Conversation.objects.filter(pk=conversation.pk).update(active_message=ids[tree.active_id])
    return conversation


def _conversation(incoming: Incoming, tree: Tree, user_id: UUID) -> Conversation:
    times = [node.created_at for node in tree.nodes if node.created_at]
    created_at = incoming.created_at or min(times, default=timezone.now())
    return Conversation(
        user_id=user_id,
        title=incoming.title,
        is_title_chosen=incoming.is_title_chosen,
        model=incoming.model,
        instructions=incoming.instructions,
        pinned=incoming.pinned,
        archived=incoming.archived,
        created_at=created_at,
        updated_at=incoming.updated_at or max(times, default=created_at),
    )


def _messages(conversation: Conversation, nodes: list[Node], ids: dict[str, UUID]) -> Iterator[Message]:
    times: dict[str, datetime] = {}
    for node in nodes:
        above = times[node.parent_id] if node.parent_id is not None else conversation.created_at
        times[node.id] = node.created_at or above
        yield Message(
            id=ids[node.id],
            conversation=conversation,
            parent_id=ids[node.parent_id] if node.parent_id is not None else None,
            role=node.role or Message.Role.USER,
            content=node.content,
            status=node.status,
            finish_reason=node.finish_reason,
            model=node.model,
            tokens_in=node.tokens_in,
            tokens_cached=node.tokens_cached,
            tokens_out=node.tokens_out,
            created_at=times[node.id],
        )


def _summaries(conversation: Conversation, incoming: Incoming, ids: dict[str, UUID]) -> list[Summary]:
    """Return the summaries whose messages are there; of two up to the same message, the first."""
    by_message = {each.covers_up_to: each for each in reversed(incoming.summaries) if each.covers_up_to in ids}
    return [
        Summary(
            conversation=conversation,
            covers_up_to_id=ids[each.covers_up_to],
            made_for_id=ids.get(each.made_for, ids[each.covers_up_to]),
            epoch=each.epoch,
            text=each.text,
            model=each.model,
            created_at=each.created_at or conversation.updated_at,
        )
        for each in reversed(by_message.values())
    ]
