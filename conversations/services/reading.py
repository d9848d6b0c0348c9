"""Reads what a prompt is made of: what the claim brought, and the history from the cache or the database."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from conversations.context.material import Material, Remembered, Said
from conversations.context.record import Record
from conversations.services.context_cache import ContextCache, Place
from conversations.services.history import History, read_history
from foundation.database import in_database

MOST_HISTORY_BYTES = 4 * 1024 * 1024
"""More of a conversation than this is never read."""
_MOST_BYTES_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Opening:
    """What the claim reads of a prompt's material: everything but the history.

    `last` is the message that is answered or continued, `tip` the one before it; `previous` is the record of the
    nearest answer above the one to be written. `last` is `None` only in a damaged tree.
    """

    last: Said | None = None
    tip: UUID | None = None
    context_version: int = 0
    is_temporary: bool = False
    user_instructions: str = ""
    instructions: str = ""
    memories: tuple[Remembered, ...] = ()
    previous: Record | None = None


async def read_material(
    opening: Opening, cache: ContextCache, *, user_id: UUID, conversation_id: UUID, most_bytes: int = MOST_HISTORY_BYTES
) -> Material:
    """Return all that a prompt can be made of. History is read from the newest message back, `most_bytes` at most.

    Raise what the database raises while it is away.
    """
    history = History()
    if opening.tip is not None:
        place = Place(user_id, conversation_id, opening.tip, opening.context_version)
        history = await _history_of(place, cache, opening.previous, most_bytes)
    return material_of(opening, history)


def material_of(opening: Opening, history: History) -> Material:
    """Return what a prompt is made of."""
    return Material(
        path=(*history.said, *([opening.last] if opening.last else [])),
        site_instructions=settings.SYSTEM_INSTRUCTIONS,
        user_instructions=opening.user_instructions,
        instructions=opening.instructions,
        memories=opening.memories,
        summaries=history.summaries,
        head_count=history.head_count,
        unread_messages=history.unread_messages,
        previous=opening.previous,
    )


async def _history_of(place: Place, cache: ContextCache, previous: Record | None, most_bytes: int) -> History:
    found = await cache.find(place)
    if found is not None and _reaches(found, previous):
        return found
    return await in_database(
        read_history,
        conversation_id=place.conversation_id,
        tip=place.tip,
        previous=previous,
        most_bytes=most_bytes,
    )


def _reaches(history: History, previous: Record | None) -> bool:
    """Whether a kept history has all that the prompt after `previous` may hold."""
    if previous is None or previous.tail_from is None:
        return history.unread_messages == 0
    has_summary = not previous.summary or any(
        each.summary_id == previous.summary.summary_id for each in history.summaries
    )
    return has_summary and any(each.message_id == previous.tail_from for each in history.said)


def history_after(material: Material, record: Record | None, answer: Said) -> History:
    """Return the history for the next message: what this prompt kept, the question and the answer.

    Without a `record` nothing was left out.
    """
    said = (*material.path, answer)
    if record is None or record.tail_from is None:
        return History(said, material.head_count, material.unread_messages, material.summaries)
    ids = [each.message_id for each in said]
    head_count = ids.index(record.head_up_to) + 1 if record.head_up_to in ids else 0
    kept = said[:head_count] + said[ids.index(record.tail_from) :]
    return History(kept, head_count, record.messages_dropped, material.summaries)


def most_history_bytes(windows: Iterable[int | None]) -> int:
    """Return how much of a conversation is worth reading, where its prompt may go to any of these windows.

    More does not fit, unless tokens are longer than words; then the beginning is left out, and said to be.
    """
    known = [window or 0 for window in windows]
    if not known or not all(known):
        return MOST_HISTORY_BYTES
    return min(MOST_HISTORY_BYTES, max(known) * _MOST_BYTES_PER_TOKEN)
