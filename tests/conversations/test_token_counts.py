"""Counts of messages are kept once, beside those of other tokenizers."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections

from conversations.models import Conversation, Message
from conversations.services import token_counts
from foundation.ids import new_id
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def messages():
    conversation = Conversation.objects.create(user=make_user())
    return [Message.objects.create(conversation=conversation, role="user", content=str(n)) for n in range(12)]


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
        token_counts.store({first.pk: 7, second.pk: 0}, "Org/Small")
    assert counts_of(first, second, other) == [{"Org/Small": 7}, {"Org/Small": 0}, {}]


def test_counts_of_other_tokenizers_stay(messages):
    token_counts.store({messages[0].pk: 7}, "Org/Small")
    token_counts.store({messages[0].pk: 5}, "Org/Large@0f1e")
    assert counts_of(messages[0]) == [{"Org/Small": 7, "Org/Large@0f1e": 5}]


def test_what_is_stored_already_is_not_written_again(messages):
    token_counts.store({messages[0].pk: 7}, "Org/Small")
    before = version_of(messages[0])
    token_counts.store({messages[0].pk: 7}, "Org/Small")
    assert version_of(messages[0]) == before


def test_a_message_that_was_deleted_is_left_alone(messages):
    token_counts.store({new_id(): 7, messages[0].pk: 3}, "Org/Small")
    assert counts_of(messages[0]) == [{"Org/Small": 3}]
    assert Message.objects.count() == len(messages)


def test_nothing_to_store_asks_nothing(django_assert_num_queries):
    with django_assert_num_queries(0):
        token_counts.store({}, "Org/Small")


def test_a_tokenizers_name_may_have_any_characters(messages):
    name = """/srv/o'hara "x"/{a}/%s/tokenizer.json"""
    token_counts.store({messages[0].pk: 7}, name)
    assert counts_of(messages[0]) == [{name: 7}]


@pytest.mark.django_db(transaction=True)
def test_many_that_store_the_same_messages_at_once_lose_nothing(messages):
    ids = [message.pk for message in messages]
    together = Barrier(6, timeout=10)

    def store(number):
        try:
            together.wait()
            order = ids if number % 2 else list(reversed(ids))
            for repeat in range(10):
                token_counts.store(dict.fromkeys(order, repeat), f"tokenizer {number}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(store, range(6)))
    assert counts_of(*messages) == [{f"tokenizer {number}": 9 for number in range(6)}] * len(messages)
