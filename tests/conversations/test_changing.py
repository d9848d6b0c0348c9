"""What a change of a conversation writes, and what it leaves alone."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation
from conversations.services import conversations
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_pin_does_not_undo_a_title_that_was_chosen_at_the_same_moment():
    user = make_user()
    conversation = conversations.create(user=user)
    with CaptureQueriesContext(connection) as queries:
        conversations.change(user=user, conversation_id=conversation.id, changes={"pinned": True})
    (update,) = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
    written = update.partition(" SET ")[2].partition(" WHERE ")[0]
    assert written.startswith('"pinned" = true, "context_version" = ')
    assert '"title"' not in written


@pytest.mark.parametrize(("title", "is_chosen"), [("Mine", True), ("", False)])
def test_a_title_is_the_users_until_it_is_taken_away(title, is_chosen):
    user = make_user()
    conversation = conversations.create(user=user, title="First")
    conversations.change(user=user, conversation_id=conversation.id, changes={"title": title})
    stored = Conversation.objects.get(pk=conversation.id)
    assert (stored.title, stored.is_title_chosen) == (title, is_chosen)


def test_the_shown_branch_is_stored():
    user = make_user()
    conversation = conversations.create(user=user)
    message = conversation.messages.create(role="user", content="Hi")
    conversations.change(user=user, conversation_id=conversation.id, changes={"active_message_id": message.id})
    assert Conversation.objects.get(pk=conversation.id).active_message_id == message.id
