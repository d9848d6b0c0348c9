"""A conversation that is deleted while something else happens to it is gone, and says so."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection, connections, transaction

from conversations.exceptions import NotFound
from conversations.models import Conversation
from conversations.services import conversations
from tests.accounts.factories import make_user
from tests.running_site import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("changes", [{"title": "New"}, {"pinned": True}, {"active_message_id": None}], ids=str)
def test_a_change_that_comes_while_the_conversation_is_deleted_finds_nothing(changes):
    user = make_user()
    conversation = Conversation.objects.create(user=user)

    def change():
        with closing(connections["default"]):
            conversations.change(user=user, conversation_id=conversation.pk, changes=changes)

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Conversation.objects.filter(pk=conversation.pk).delete()
            changing = thread.submit(change)
            wait_until(somebody_waits_for_a_lock, what="the change that waits for the deletion")
        with pytest.raises(NotFound):
            changing.result(20)
    assert not Conversation.objects.exists()
