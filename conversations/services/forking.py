"""Copying a conversation up to one of its messages into a new one. The original stays as it is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from accounts.models import User
from conversations import queries
from conversations.context.record import Record, record_in
from conversations.exceptions import GenerationInProgress, InvalidRequest, NotFound
from conversations.models import Conversation, Generation, Message, Summary
from conversations.services.conversations import MOST_TITLE_CHARACTERS, tell_changed
from foundation.ids import new_id
from foundation.text import truncated

log = structlog.get_logger(__name__)

MOST_MESSAGES = 5_000
"""A longer branch is not copied: all of it is written in one transaction."""
_ADDITION = " (copy)"

_MESSAGES = """
WITH copied AS (SELECT * FROM unnest(%(old)s::uuid[], %(new)s::uuid[], %(parents)s::uuid[]) AS t(old, new, parent))
INSERT INTO conversations_message (id, conversation_id, parent_id, COLUMNS)
SELECT copied.new, %(conversation)s, copied.parent, COLUMNS
FROM copied JOIN conversations_message original ON original.id = copied.old
"""
_GENERATIONS = """
WITH copied AS (SELECT * FROM unnest(%(old)s::uuid[], %(new)s::uuid[]) AS t(old, new)),
records AS (SELECT * FROM unnest(%(recorded)s::uuid[], %(records)s::text[]) AS t(old, record))
INSERT INTO conversations_generation (message_id, conversation_id, context, COLUMNS)
SELECT copied.new, %(conversation)s, records.record::jsonb, COLUMNS
FROM copied JOIN conversations_generation original ON original.message_id = copied.old
LEFT JOIN records ON records.old = copied.old
"""
_SUMMARIES = """
WITH copied AS (
  SELECT * FROM unnest(%(old)s::uuid[], %(new)s::uuid[], %(covers)s::uuid[], %(made_for)s::uuid[])
  AS t(old, new, covers, made_for)
)
INSERT INTO conversations_summary (id, conversation_id, covers_up_to_id, made_for_id, COLUMNS)
SELECT copied.new, %(conversation)s, copied.covers, copied.made_for, COLUMNS
FROM copied JOIN conversations_summary original ON original.id = copied.old
"""
"""The texts never leave the database."""


def fork(*, user: User, conversation_id: UUID, message_id: UUID | None = None) -> Conversation:
    """Copy the path to a message, or else the shown branch, into a new conversation, and return that.

    Messages, the records of their generations and the summaries that hold get ids of their own; usage is not copied.
    Raise `NotFound`, `InvalidRequest` for a branch of more than `MOST_MESSAGES`, or `GenerationInProgress`.
    """
    with transaction.atomic():
        locked = Conversation.objects.owned_by(user.id).select_for_update(no_key=True)
        original = locked.filter(pk=conversation_id).first()
        if original is None:
            raise NotFound("There is no such conversation.", param="conversation_id")
        path = _path_of(original, message_id)
        ids = dict(zip(path, sorted(new_id() for _ in path), strict=True))
        copy = _empty_copy(original)
        copy.save(force_insert=True)
        _copy_messages(copy, path, ids)
        _copy_generations(copy, ids, _copy_summaries(copy, ids))
        copy.active_message_id = ids[path[-1]] if path else None
        copy.save(update_fields=["active_message"])
    tell_changed(copy)
    return copy


def _path_of(original: Conversation, message_id: UUID | None) -> list[UUID]:
    path = queries.branch_ids(original, message_id)
    if message_id is not None and not path:
        raise NotFound("message_id names no message of this conversation.", param="message_id")
    if len(path) > MOST_MESSAGES:
        raise InvalidRequest(
            f"This branch has {len(path):,} messages; {MOST_MESSAGES:,} can be copied.", param="message_id"
        )
    if Message.objects.filter(pk__in=path, status__in=Message.UNDER_WAY).exists():
        raise GenerationInProgress("An answer is still being written here; stop it, or wait for its end.")
    return path


def _empty_copy(original: Conversation) -> Conversation:
    """The title is kept as it is: what asks a model for one would not know that it is a copy."""
    now = timezone.now()
    title = original.title and truncated(original.title, MOST_TITLE_CHARACTERS - len(_ADDITION)) + _ADDITION
    return Conversation(
        user_id=original.user_id,
        title=title,
        is_title_chosen=bool(title),
        model=original.model,
        instructions=original.instructions,
        temporary=original.temporary,
        created_at=now,
        updated_at=now,
    )


def _copy_messages(copy: Conversation, path: list[UUID], ids: Mapping[UUID, UUID]) -> None:
    new = list(ids.values())
    _copy(
        Message,
        _MESSAGES,
        own={"id", "conversation_id", "parent_id"},
        parameters={"conversation": copy.id, "old": path, "new": new, "parents": [None, *new[:-1]][: len(new)]},
    )


def _copy_summaries(copy: Conversation, ids: Mapping[UUID, UUID]) -> dict[UUID, UUID]:
    """Copy the summaries that hold for the path, and return the copies' ids."""
    holding = Summary.objects.filter(covers_up_to__in=list(ids)).order_by("id")
    rows = list(holding.values_list("id", "covers_up_to_id", "made_for_id"))
    new_ids = {old: new_id() for old, _, _ in rows}
    _copy(
        Summary,
        _SUMMARIES,
        own={"id", "conversation_id", "covers_up_to_id", "made_for_id"},
        parameters={
            "conversation": copy.id,
            "old": list(new_ids),
            "new": list(new_ids.values()),
            "covers": [ids[covers] for _, covers, _ in rows],
            # Made for a message that the path has not got: it holds by what it covers.
            "made_for": [ids.get(made_for, ids[covers]) for _, covers, made_for in rows],
        },
    )
    return new_ids


def _copy_generations(copy: Conversation, ids: Mapping[UUID, UUID], summary_ids: Mapping[UUID, UUID]) -> None:
    recorded = Generation.objects.filter(pk__in=list(ids), context__isnull=False).values_list("pk", "context")
    records = {generation_id: _translated(stored, ids, summary_ids) for generation_id, stored in recorded}
    if damaged := [each for each, record in records.items() if record is None]:
        log.warning("records_not_copied", conversation_id=str(copy.id), count=len(damaged))
    _copy(
        Generation,
        _GENERATIONS,
        own={"message_id", "conversation_id", "context"},
        parameters={
            "conversation": copy.id,
            "old": list(ids),
            "new": list(ids.values()),
            "recorded": list(records),
            "records": list(records.values()),
        },
    )


def _translated(
    stored: dict[str, Any] | None, ids: Mapping[UUID, UUID], summary_ids: Mapping[UUID, UUID]
) -> str | None:
    """Return a record with the copies' ids; `None` for one that cannot be read, or names what was not copied."""
    record = record_in(stored)
    try:
        return orjson.dumps(_with_new_ids(record, ids, summary_ids).as_json()).decode() if record else None
    except KeyError:
        return None


def _with_new_ids(record: Record, ids: Mapping[UUID, UUID], summary_ids: Mapping[UUID, UUID]) -> Record:
    summary = record.summary
    return replace(
        record,
        head_up_to=ids[record.head_up_to] if record.head_up_to else None,
        dropped_up_to=ids[record.dropped_up_to] if record.dropped_up_to else None,
        tail_from=ids[record.tail_from] if record.tail_from else None,
        trimmed_passages=tuple((ids[message_id], kept) for message_id, kept in record.trimmed_passages),
        summary=replace(summary, summary_id=summary_ids[summary.summary_id]) if summary else None,
    )


def _copy(model: type[Model], statement: str, *, own: set[str], parameters: Mapping[str, Any]) -> None:
    """Run the statement for all columns of the model that the copies have in common with the originals."""
    columns = [field.column for field in model._meta.local_concrete_fields if field.column and field.column not in own]
    with connection.cursor() as cursor:
        into, _, rest = statement.partition("COLUMNS")
        cursor.execute(
            f"{into}{', '.join(columns)}{rest.replace('COLUMNS', ', '.join(f'original.{each}' for each in columns))}",
            parameters,
        )
