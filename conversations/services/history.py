"""Reads what was said before a message: as much of the path that leads to it as a prompt can hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from conversations.context.material import Said, Summarised
from conversations.context.record import Record
from inference.messages import Role

BYTES_PER_MESSAGE = 64
"""What a message counts beside its content, so that a damaged tree's circle ends too."""
_MOST_HEAD_MESSAGES = 16
_MOST_SUMMARIES = 4

_PATH = """
WITH RECURSIVE tail AS (
  SELECT id, parent_id, 1 AS depth, octet_length(content) + %(bytes_per_message)s AS bytes
  FROM conversations_message WHERE id = %(tip)s AND conversation_id = %(conversation_id)s
  UNION ALL
  SELECT message.id, message.parent_id, tail.depth + 1,
         tail.bytes + octet_length(message.content) + %(bytes_per_message)s
  FROM tail JOIN conversations_message message
  ON message.id = tail.parent_id AND message.conversation_id = %(conversation_id)s
  WHERE tail.bytes < %(most_bytes)s AND tail.id IS DISTINCT FROM %(tail_from)s
), head AS (
  SELECT id, parent_id, 1 AS depth FROM conversations_message
  WHERE id = %(head_up_to)s AND conversation_id = %(conversation_id)s
  UNION ALL
  SELECT message.id, message.parent_id, head.depth + 1
  FROM head JOIN conversations_message message
  ON message.id = head.parent_id AND message.conversation_id = %(conversation_id)s
  WHERE head.depth < %(most_head)s
), found AS (
  SELECT 'tail' AS part, id, depth FROM tail UNION ALL SELECT 'head', id, depth FROM head
)
SELECT found.part, found.depth, message.id, message.parent_id, message.role, message.content, message.token_counts
FROM found JOIN conversations_message message
ON message.id = found.id AND message.conversation_id = %(conversation_id)s
UNION ALL (
  SELECT 'summary', epoch, id, covers_up_to_id, '', text, '{}' FROM conversations_summary
  WHERE conversation_id = %(conversation_id)s
    AND (id = %(summary_id)s OR covers_up_to_id IN (SELECT id FROM found) OR made_for_id IN (SELECT id FROM found))
  ORDER BY id IS NOT DISTINCT FROM %(summary_id)s DESC, epoch DESC LIMIT %(most_summaries)s
)
"""
"""The path is walked by the parents, so that a tree of many branches costs no more than the branch that counts.

Ends at the message from which on the prompt before this one kept all, or where the path would outgrow every window.
"""

_LINKS = """
SELECT COALESCE(string_agg(uuid_send(id) || uuid_send(COALESCE(parent_id, %(none)s)), ''::bytea), ''::bytea)
FROM conversations_message WHERE conversation_id = %(conversation_id)s
"""
"""The whole tree as ids of 16 bytes: of 5,000 messages read and walked in a third of the time that recursion takes."""
_ID_BYTES = 16
_NONE = UUID(int=0)

_SOME = """
SELECT 'head', array_position(%(ids)s::uuid[], id), id, parent_id, role, content, token_counts
FROM conversations_message WHERE id = ANY(%(ids)s::uuid[]) AND conversation_id = %(conversation_id)s
"""


@dataclass(frozen=True, slots=True)
class History:
    """What was read of the path up to and with one message, for the prompt that comes next.

    The first `head_count` messages of `said` are the path's beginning, between them and the rest `unread_messages` are
    missing (`None`: nobody knows how many). `summaries` hold for this path, the oldest epoch first.
    """

    said: tuple[Said, ...] = ()
    head_count: int = 0
    unread_messages: int | None = 0
    summaries: tuple[Summarised, ...] = ()


class _Row(NamedTuple):
    part: str
    depth: int
    id: UUID
    parent_id: UUID | None
    role: Role
    content: str
    token_counts: str

    def said(self) -> Said:
        return Said(self.id, self.role, self.content, orjson.loads(self.token_counts))


def read_history(*, conversation_id: UUID, tip: UUID, previous: Record | None, most_bytes: int) -> History:
    """Read the path up to and with the message `tip`, as far back as the prompt after `previous` can reach.

    Without a record as far as there are `most_bytes`, and its first exchange. One statement; three where the path was
    too long and had no record. A damaged tree yields what can be read of it.
    """
    parameters = {
        "conversation_id": conversation_id,
        "tip": tip,
        "tail_from": previous.tail_from if previous else None,
        "head_up_to": previous.head_up_to if previous else None,
        "summary_id": previous.summary.summary_id if previous and previous.summary else None,
        "most_bytes": most_bytes,
        "bytes_per_message": BYTES_PER_MESSAGE,
        "most_head": _MOST_HEAD_MESSAGES,
        "most_summaries": _MOST_SUMMARIES,
    }
    rows = _rows(_PATH, parameters)
    tail = _once_each([row for row in rows if row.part == "tail"])
    summaries = tuple(
        Summarised(row.id, row.depth, row.content, row.parent_id)
        for row in rows
        if row.part == "summary" and row.parent_id is not None
    )
    if not tail or tail[-1].parent_id is None:
        return History(_in_order(tail), summaries=summaries)
    if previous is None or previous.tail_from is None:
        head, unread = _read_beginning(conversation_id, tail)
    else:
        head = _whole([row for row in rows if row.part == "head"], before=tail[-1])
        unread = previous.messages_dropped if tail[-1].id == previous.tail_from else None
    return History(_in_order(head) + _in_order(tail), len(head), unread, summaries)


def _rows(statement: str, parameters: dict[str, Any]) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return sorted(_Row(*row) for row in cursor.fetchall())


def _once_each(rows: list[_Row]) -> list[_Row]:
    """Return the rows up to the first message that comes a second time."""
    seen: set[UUID] = set()
    for place, row in enumerate(rows):
        if row.id in seen:
            return rows[:place]
        seen.add(row.id)
    return rows


def _in_order(rows: Sequence[_Row]) -> tuple[Said, ...]:
    return tuple(row.said() for row in reversed(rows))


def _read_beginning(conversation_id: UUID, tail: list[_Row]) -> tuple[list[_Row], int | None]:
    """Return the path's first exchange, newest first, and how many messages lie between it and the tail.

    Needed once in a long conversation, where no prompt has been recorded yet.
    """
    above = _ids_above(tail[-1], conversation_id)
    if not above:
        return [], None
    # Ids are made of the few that are needed: of all of them that would take longer than the rest.
    first = [UUID(bytes=each) for each in above[-_MOST_HEAD_MESSAGES:]]
    head = _first_exchange(_rows(_SOME, {"ids": first, "conversation_id": conversation_id}))
    return head, len(above) - len(head)


def _ids_above(row: _Row, conversation_id: UUID) -> list[bytes]:
    """Return the ids of the messages above, as bytes; none where a damaged tree does not lead to a first message."""
    with connection.cursor() as cursor:
        cursor.execute(_LINKS, {"conversation_id": conversation_id, "none": _NONE})
        links = bytes(cursor.fetchone()[0])
    pairs = range(0, len(links), 2 * _ID_BYTES)
    parents = {links[at : at + _ID_BYTES]: links[at + _ID_BYTES : at + 2 * _ID_BYTES] for at in pairs}
    above, step = [], row.parent_id.bytes if row.parent_id else _NONE.bytes
    while step in parents:
        above.append(step)
        step = parents.pop(step)  # taken out, so that a circle ends
    return above if step == _NONE.bytes else []


def _first_exchange(rows: list[_Row]) -> list[_Row]:
    """Return the path's first question with its answer; `rows` lead from some message up to the first one."""
    roles = [row.role for row in reversed(rows)]
    answer = roles.index("assistant") if "assistant" in roles else len(roles)
    following = next((place for place in range(answer, len(roles)) if roles[place] == "user"), None)
    return (
        [] if following is None and len(rows) == _MOST_HEAD_MESSAGES else rows[len(rows) - (following or len(rows)) :]
    )


def _whole(head: list[_Row], *, before: _Row) -> list[_Row]:
    """Return the head if it was read up to the first message, and comes before the tail."""
    is_whole = bool(head) and head[-1].parent_id is None and all(row.id != before.id for row in head)
    return head if is_whole else []
