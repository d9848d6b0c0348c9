"""A conversation is named once, after its first complete answer, and never over the name that its user gave."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from conversations import tasks
from conversations.context.record import Record
from conversations.models import Conversation, Errand, Generation, Message
from conversations.services import background, conversations, errands
from foundation.redis import shared_client
from tests.conversations.background.asking import (
    QUESTION,
    make_answer,
    new_conversation,
    read_errand,
    read_title,
    written_errand,
)
from tests.inference.core.factories import answer_to

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]


def run_together(*calls):
    """Run the calls in a thread each, begun at once."""
    start = Barrier(len(calls))

    def run(call):
        start.wait(10)
        try:
            call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        for each in [threads.submit(run, call) for call in calls]:
            each.result()


def title_errands(conversation):
    return list(Errand.objects.filter(kind="title", conversation=conversation))


def test_the_first_complete_answer_asks_for_a_title():
    answer = make_answer(content="Rinse it first.")
    background.look_after(answer.pk)
    (errand,) = title_errands(answer.conversation)
    last = errand.prompt[-1][1]
    assert QUESTION in last
    assert "Rinse it first." in last


def test_an_answer_that_went_on_after_a_stop_is_named_by_its_question():
    stopped = make_answer(status="cancelled", content="First the rice ")
    going_on = answer_to(stopped.message)
    Message.objects.filter(pk=going_on.pk).update(status="complete", content="is rinsed.")
    Generation.objects.filter(pk=going_on.pk).update(status="complete", finished_at=timezone.now())
    background.look_after(going_on.pk)
    (errand,) = title_errands(stopped.conversation)
    assert f"User: {QUESTION}\n\nAssistant: First the rice is rinsed." in errand.prompt[-1][1]
    assert errands.finish(errands.claim(errand.pk), "")
    background.settle(errand.pk)
    assert read_title(stopped.conversation_id) == QUESTION


def test_of_two_quick_answers_one_asks_whichever_is_looked_after_first():
    conversation = new_conversation()
    first, second = make_answer(conversation), make_answer(conversation, question="And beans?")
    for answer in (second, first, second):
        background.look_after(answer.pk)
    assert len(title_errands(conversation)) == 1


@pytest.mark.parametrize("status", ["queued", "running", "cancelled", "failed"])
def test_an_answer_that_is_not_whole_asks_for_none(status):
    answer = make_answer(status=status)
    background.look_after(answer.pk)
    assert title_errands(answer.conversation) == []


@pytest.mark.parametrize("fields", [{"title": "Mine", "is_title_chosen": True}, {"temporary": True}], ids=str)
def test_a_named_or_temporary_conversation_asks_for_none(fields):
    conversation = new_conversation(**fields)
    background.look_after(make_answer(conversation).pk)
    assert title_errands(conversation) == []


def test_what_was_written_becomes_the_title():
    errand = written_errand('{"title": "Cooking rice"}')
    background.settle(errand.pk)
    assert read_title(errand.conversation_id) == "Cooking rice"


@pytest.mark.parametrize("text", ["", "<think>Hm", "I'm sorry, I can't."])
def test_what_is_no_title_leaves_the_questions_words(text):
    errand = written_errand(text)
    background.settle(errand.pk)
    assert read_title(errand.conversation_id) == QUESTION
    assert read_errand(errand.pk).status == "settled"


def test_a_title_that_the_user_gave_meanwhile_stays():
    answer = make_answer()
    errand = written_errand("Rice", answer=answer)
    conversations.change(
        user=answer.conversation.user, conversation_id=answer.conversation_id, changes={"title": "Mine"}
    )
    background.settle(errand.pk)
    assert read_title(answer.conversation_id) == "Mine"


@pytest.mark.parametrize("_round", range(10))
def test_whoever_comes_first_the_users_title_stands_in_the_end(_round):
    answer = make_answer()
    errand = written_errand("Rice", answer=answer)

    def rename():
        conversations.change(
            user=answer.conversation.user, conversation_id=answer.conversation_id, changes={"title": "Mine"}
        )

    run_together(rename, lambda: background.settle(errand.pk))
    conversation = Conversation.objects.get(pk=answer.conversation_id)
    assert (conversation.title, conversation.is_title_chosen) == ("Mine", True)


@pytest.mark.parametrize("_round", range(10))
def test_a_conversation_deleted_meanwhile_is_deleted_and_nothing_waits_for_ever(_round):
    answer = make_answer()
    errand = written_errand("Rice", answer=answer)

    def delete():
        conversations.delete(user=answer.conversation.user, conversation_id=answer.conversation_id)

    run_together(delete, lambda: background.settle(errand.pk))
    assert not Conversation.objects.filter(pk=answer.conversation_id).exists()
    assert not Errand.objects.exists()


@pytest.mark.parametrize("_round", range(5))
def test_one_deleted_while_it_is_asked_for_is_deleted_with_its_errand(_round):
    answer = make_answer()

    def delete():
        conversations.delete(user=answer.conversation.user, conversation_id=answer.conversation_id)

    run_together(delete, lambda: background.look_after(answer.pk))
    assert not Errand.objects.exists()


def test_a_title_moves_no_conversation_up():
    errand = written_errand("Rice")
    before = Conversation.objects.get(pk=errand.conversation_id).updated_at
    background.settle(errand.pk)
    assert Conversation.objects.get(pk=errand.conversation_id).updated_at == before


def test_tasks_that_run_three_times_at_once_and_late_come_to_the_same():
    answer = make_answer()
    run_together(*[lambda: tasks.look_after_answer(str(answer.pk))] * 3)
    (errand,) = title_errands(answer.conversation)
    assert errands.finish(errands.claim(errand.pk), "Rice")
    run_together(*[lambda: tasks.settle_errand(str(errand.pk))] * 3)
    assert read_title(answer.conversation_id) == "Rice"

    conversations.change(
        user=answer.conversation.user, conversation_id=answer.conversation_id, changes={"title": "Mine"}
    )
    tasks.look_after_answer(str(answer.pk))
    tasks.settle_errand(str(errand.pk))
    assert len(title_errands(answer.conversation)) == 1
    assert read_title(answer.conversation_id) == "Mine"


def test_answers_that_nobody_has_looked_after_are_found():
    long_ago = timezone.now() - timedelta(minutes=5)
    told, untold = make_answer(finished_at=long_ago), make_answer(finished_at=long_ago)
    make_answer()  # whose worker may be telling of it now
    make_answer(status="cancelled", finished_at=long_ago)
    background.look_after(told.pk)
    assert background.neglected() == [untold.pk]
    background.look_after(untold.pk)
    assert background.neglected() == []


def test_those_that_redis_has_forgotten_are_found_again_and_nothing_comes_of_it():
    # A long one: of a short one nothing more can come once its conversation has been named.
    long_one = record_json(budget_tokens=100, total_tokens=90)
    answer = make_answer(finished_at=timezone.now() - timedelta(minutes=5), context=long_one)
    Message.objects.filter(pk=answer.pk).update(tokens_in=90, tokens_out=5)
    background.look_after(answer.pk)
    shared_client().delete(*shared_client().keys("*looked-after*"))
    (found,) = background.neglected()
    background.look_after(found)
    assert len(title_errands(answer.conversation)) == 1


def test_a_short_answer_of_a_named_conversation_is_not_looked_at():
    answer = make_answer(
        finished_at=timezone.now() - timedelta(minutes=5), context=record_json(budget_tokens=1000, total_tokens=90)
    )
    Conversation.objects.filter(pk=answer.conversation_id).update(is_title_chosen=True)
    assert background.neglected() == []


def record_json(**counts) -> dict:
    return Record(tokenizer="t", is_exact=True, window_tokens=1200, **counts).as_json()
