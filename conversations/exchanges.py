"""A question and the answer to it, in all its parts: what was cut off may go on in further messages."""

from uuid import UUID

from django.db import connection

from conversations.models import Message

_EXCHANGE = """
WITH RECURSIVE exchange AS (
  SELECT id, parent_id, role FROM conversations_message
  WHERE id = %(id)s AND conversation_id = %(conversation_id)s
  UNION
  SELECT above.id, above.parent_id, above.role FROM exchange JOIN conversations_message above
  ON above.id = exchange.parent_id AND above.conversation_id = %(conversation_id)s
  WHERE exchange.role = 'assistant'
)
SELECT id FROM exchange ORDER BY id
"""
"""Walks up to the question. Ids grow along a path; a damaged tree's circle ends, because UNION takes no row twice."""


def question_id_of(answer: Message) -> UUID:
    """Return the id of the question that an answer, or what continues one, was written to."""
    parent = answer.parent
    assert parent is not None
    return parent.id if parent.role == Message.Role.USER else _exchange_ids(answer)[0]


def exchange_of(answer: Message) -> list[Message]:
    """Return the question, the answer's earlier parts and the answer itself."""
    parent = answer.parent
    if parent is None or parent.role == Message.Role.USER:
        return [each for each in (parent, answer) if each is not None]
    ids = [each for each in _exchange_ids(answer) if each != answer.id]
    found = Message.objects.filter(conversation=answer.conversation_id).in_bulk(ids)
    return [*(found[each] for each in ids if each in found), answer]


def _exchange_ids(answer: Message) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_EXCHANGE, {"id": answer.id, "conversation_id": answer.conversation_id})
        return [row[0] for row in cursor.fetchall()]
