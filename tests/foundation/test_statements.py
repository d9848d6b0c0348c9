"""Rows that refer to each other are written by one statement, or not at all."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation, Message
from foundation.ids import new_id
from foundation.statements import change, insertion, write_together
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def made(user):
    conversation = Conversation(user=user, title="Größer ≥ %s 🤗")
    question = Message(id=new_id(), conversation=conversation, role="user", content="'; -- %s")
    answer = Message(id=new_id(), conversation=conversation, parent=question, role="assistant", content="\\n")
    return conversation, question, answer


def test_rows_that_refer_to_each_other_are_written_by_one_statement():
    conversation, question, answer = made(make_user())
    conversation.active_message = answer
    with (
        CaptureQueriesContext(
            connection,
        ) as queries,
        transaction.atomic(),
    ):
        write_together(insertion([question, answer]), insertion([conversation]))
    assert sum("INSERT" in each["sql"] for each in queries) == 1
    stored = Message.objects.in_bulk()
    assert [stored[each.pk].content for each in (question, answer)] == [question.content, answer.content]
    assert Conversation.objects.get().active_message == answer
    assert stored[answer.pk].created_at == answer.created_at


def test_a_change_touches_the_named_fields_of_its_row_only():
    user = make_user()
    conversation, question, answer = made(user)
    other = Conversation.objects.create(user=user, title="other")
    conversation.save(force_insert=True)
    conversation.title, conversation.instructions, conversation.active_message = "new", "not named", question
    write_together(insertion([question, answer]), change(conversation, ["title", "active_message"]))
    stored = Conversation.objects.get(pk=conversation.pk)
    assert (stored.title, stored.instructions, stored.active_message_id) == ("new", "", question.pk)
    other.refresh_from_db()
    assert other.title == "other"


def test_where_one_part_fails_nothing_is_written():
    conversation, question, answer = made(make_user())
    conversation.save(force_insert=True)
    answer.id = question.id
    with pytest.raises(IntegrityError):
        write_together(insertion([question]), insertion([answer]), change(conversation, ["title"]))
    assert not Message.objects.exists()


def test_what_refers_to_nothing_is_refused_at_the_commit():
    _, question, answer = made(make_user())
    with pytest.raises(IntegrityError), transaction.atomic():
        write_together(insertion([question]), insertion([answer]))
    assert not Message.objects.exists()
