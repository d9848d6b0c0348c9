"""Counts of messages are kept once, beside those of other tokenizers."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest
from django.db import connection, connections, transaction

from conversations.models import Conversation, Message
from conversations.services import token_counts
from foundation.ids import new_id
from tests.accounts.factories import make_user
from tests.conversations.test_deleting import somebody_waits_for_a_lock
from tests.running_site import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def messages():
    conversation = Conversation.objects.create(user=make_user())
    return [Message.objects.create(conversation=conversation, role="user", content=str(n)) for n in range(12)]


def store(messages, counts, tokenizer):
    token_counts.store(counts, tokenizer, conversation_id=messages[0].conversation_id)


def counts_of(*messages):
    return [Message.objects.get(pk=message.pk).token_counts for message in messages]


def version_of(message):
    """Changes whenever the row is written."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text, xmin::text FROM conversations_message WHERE id = %s", [message.pk])
        return cursor.fetchone()


def test_counts_of_several_messages_are_stored_in_one_statement(messages, django_assert_num_queries):
    first, second, other, *_ = messages
    with django_assert_num_queries(1):
        store(messages, {first.pk: 7, second.pk: 0}, "Org/Small")
    assert counts_of(first, second, other) == [{"Org/Small": 7}, {"Org/Small": 0}, {}]


def test_counts_of_other_tokenizers_stay(messages):
    store(messages, {messages[0].pk: 7}, "Org/Small")
    store(messages, {messages[0].pk: 5}, "Org/Large@0f1e")
    assert counts_of(messages[0]) == [{"Org/Small": 7, "Org/Large@0f1e": 5}]


def test_what_is_stored_already_is_not_written_again(messages):
    store(messages, {messages[0].pk: 7}, "Org/Small")
    before = version_of(messages[0])
    store(messages, {messages[0].pk: 7}, "Org/Small")
    assert version_of(messages[0]) == before


def test_a_message_that_was_deleted_is_left_alone(messages):
    store(messages, {new_id(): 7, messages[0].pk: 3}, "Org/Small")
    assert counts_of(messages[0]) == [{"Org/Small": 3}]
    assert Message.objects.count() == len(messages)


def test_nothing_to_store_asks_nothing(messages, django_assert_num_queries):
    with django_assert_num_queries(0):
        store(messages, {}, "Org/Small")


def test_a_tokenizers_name_may_have_any_characters(messages):
    name = """/srv/o'hara "x"/{a}/%s/tokenizer.json"""
    store(messages, {messages[0].pk: 7}, name)
    assert counts_of(messages[0]) == [{name: 7}]


@pytest.mark.django_db(transaction=True)
def test_many_that_store_the_same_messages_at_once_lose_nothing(messages):
    ids = [message.pk for message in messages]
    together = Barrier(6, timeout=10)

    def store_often(number):
        try:
            together.wait()
            order = ids if number % 2 else list(reversed(ids))
            for repeat in range(10):
                store(messages, dict.fromkeys(order, repeat), f"tokenizer {number}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(store_often, range(6)))
    assert counts_of(*messages) == [{f"tokenizer {number}": 9 for number in range(6)}] * len(messages)


def test_a_count_of_another_conversations_message_is_not_stored(messages):
    other = Message.objects.create(
        conversation=Conversation.objects.create(user=messages[0].conversation.user), role="user", content="x"
    )
    store(messages, {other.pk: 7}, "Org/Small")
    assert counts_of(other) == [{}]


@pytest.mark.django_db(transaction=True)
def test_whoever_deletes_the_conversation_need_not_wait_for_counts_that_wait_for_it(messages):
    def store_counts():
        with closing(connections["default"]):
            store(messages, {message.pk: 7 for message in messages}, "Org/Small")

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Conversation.objects.select_for_update().get(pk=messages[0].conversation_id)
            storing = thread.submit(store_counts)
            wait_until(somebody_waits_for_a_lock, what="the counts that wait for the deletion")
            assert (
                len(Message.objects.select_for_update(nowait=True).filter(conversation=messages[0].conversation)) == 12
            )
            messages[0].conversation.delete()
        storing.result(20)
    assert not Message.objects.exists()
