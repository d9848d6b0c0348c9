"""Tasks that run three times at once, and late: one errand, one summary."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from conversations.models import Conversation, Errand, Generation, Summary
from conversations.services import background, conversations, errands, summaries
from tests.conversations.summaries.talks import StoredTalk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]


def thrice(run, *arguments):
    """Run something three times at once, each on a connection of its own."""

    def once(_):
        try:
            return run(*arguments)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(once, range(3)))


def test_who_looks_three_times_at_once_asks_for_one_summary():
    generation = StoredTalk().chat(12)
    asked = thrice(summaries.ask_for_summary, generation)
    assert len([errand for errand in asked if errand]) == 1
    assert Errand.objects.filter(kind="summary").count() == 1


def test_what_is_settled_three_times_at_once_makes_one_summary():
    talk = StoredTalk()
    errand = summaries.ask_for_summary(talk.chat(12))
    errands.finish(errands.claim(errand.pk), "- small matters")
    thrice(background.settle, errand.pk)
    assert Summary.objects.get().covers_up_to_id == errand.message_id
    assert Conversation.objects.get(pk=talk.conversation.pk).context_version == 1


def test_two_errands_for_the_same_messages_make_one_summary():
    talk = StoredTalk()
    first = summaries.ask_for_summary(talk.chat(12))
    errands.finish(errands.claim(first.pk), "- small matters")
    written = Errand.objects.get(pk=first.pk)
    background.settle(first.pk)
    assert summaries.settle(written)
    assert Summary.objects.count() == 1


def test_a_conversation_deleted_while_its_summary_is_settled_leaves_nothing():
    for _ in range(5):
        talk = StoredTalk()
        errand = summaries.ask_for_summary(talk.chat(8))
        errands.finish(errands.claim(errand.pk), "- small matters")
        with ThreadPoolExecutor(2) as threads:
            settling = threads.submit(thrice, background.settle, errand.pk)
            conversations.delete(user=talk.conversation.user, conversation_id=talk.conversation.pk)
            settling.result()
        assert not Summary.objects.exists()
        assert not Errand.objects.exists()


def test_a_task_that_comes_long_after_the_answer_covers_the_same_messages_once():
    talk = StoredTalk()
    early = talk.chat(12)
    talk.chat(10, model=lambda _: "- small matters")
    covered = [each.covers_up_to_id for each in talk.stored()]
    late = Generation.objects.select_related("conversation").get(pk=early.pk)
    talk.look_after(late, lambda _: "- small matters")
    assert [each.covers_up_to_id for each in talk.stored()][: len(covered)] == covered
