"""An errand is asked for once, held by one worker at a time, and never lost; what it says is not kept for long."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from conversations.models import Errand
from conversations.services import background, errands
from foundation.redis import shared_client
from inference import queue
from inference.messages import ChatMessage
from tests.conversations.background.asking import (
    expire_lease,
    make_answer,
    make_errand,
    make_older,
    read_errand,
    written_errand,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]
KINDS = list(Errand.Kind)


def ask(kind, answer):
    return errands.request(
        kind, conversation=answer.conversation, message_id=answer.pk, prompt=[ChatMessage("user", "x")], max_tokens=9
    )


def at_once(count, function, *arguments):
    """Call it in so many threads at once; return what each call returned."""

    def call():
        try:
            return function(*arguments)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        return [each.result() for each in [threads.submit(call) for _ in range(count)]]


def waiting():
    return queue.waiting_count(shared_client())


@pytest.mark.parametrize("kind", KINDS)
def test_several_that_ask_at_once_make_one(kind):
    answer = make_answer()
    asked = at_once(5, ask, kind, answer)
    assert len([each for each in asked if each is not None]) == 1
    assert Errand.objects.count() == 1
    assert waiting() == 1


def test_a_conversation_has_one_title_errand_whichever_answer_asks():
    first = make_answer()
    assert ask(Errand.Kind.TITLE, first)
    assert ask(Errand.Kind.TITLE, make_answer(first.conversation)) is None


def test_every_covered_message_has_a_summary_errand_of_its_own():
    first = make_answer()
    assert ask(Errand.Kind.SUMMARY, first)
    assert ask(Errand.Kind.SUMMARY, make_answer(first.conversation))
    assert ask(Errand.Kind.SUMMARY, first) is None


def test_an_errand_waits_in_the_background_class_and_is_asked_of_the_small_model():
    errand = make_errand()
    assert (errand.model, errand.status) == ("small", "queued")
    assert shared_client().zcard(f"{queue.lua.base_key()}:waiting:small:3") == 1


def test_a_deleted_conversation_is_not_asked_for():
    answer = make_answer()
    conversation = answer.conversation
    type(conversation).objects.get(pk=conversation.pk).delete()
    assert ask(Errand.Kind.TITLE, answer) is None


def test_a_message_of_another_conversation_is_not_asked_for():
    answer, other = make_answer(), make_answer()
    answer.conversation = other.conversation
    assert ask(Errand.Kind.TITLE, answer) is None


def test_an_errand_is_claimed_once():
    errand = make_errand()
    claimed = [each for each in at_once(4, errands.claim, errand.pk) if each]
    assert [each.number for each in claimed] == [1]
    assert claimed[0].prompt == (ChatMessage("user", "Name it."),)


def test_a_worker_that_was_given_up_changes_nothing():
    errand = make_errand()
    late = errands.claim(errand.pk)
    expire_lease(errand.pk)
    background.sweep()
    mine = errands.claim(errand.pk)
    assert errands.renew([late]) == set()
    assert not errands.finish(late, "late")
    assert not errands.fail(late, is_final=True)
    errands.give_back(late)
    assert errands.renew([mine]) == {errand.pk}
    assert errands.finish(mine, "mine")
    assert read_errand(errand.pk).text == "mine"


def test_one_that_is_given_back_waits_again_and_has_not_failed():
    errand = make_errand()
    for number in range(1, 10):
        queue.remove(shared_client(), [errand.pk])
        attempt = errands.claim(errand.pk)
        assert attempt.number == number
        errands.give_back(attempt)
        assert waiting() == 1
    errand = read_errand(errand.pk)
    assert (errand.status, errand.failures) == ("queued", 0)


def test_one_that_fails_is_tried_again_later_and_in_the_end_given_up_with_its_words():
    errand = make_errand()
    for failures in range(1, errands.MOST_FAILURES + 1):
        queue.remove(shared_client(), [errand.pk])
        has_failed = errands.fail(errands.claim(errand.pk), is_final=False)
        assert has_failed == (failures == errands.MOST_FAILURES)
        assert waiting() == 0
        make_older(errand.pk, minutes=1)
        background.sweep()
        assert waiting() == (not has_failed)
    errand = read_errand(errand.pk)
    assert (errand.status, errand.prompt, errand.text) == ("failed", [], "")


def test_a_failure_that_no_other_try_could_mend_is_final():
    errand = make_errand()
    assert errands.fail(errands.claim(errand.pk), is_final=True)
    assert read_errand(errand.pk).status == "failed"


def test_a_failed_summary_is_asked_for_again_but_not_for_ever():
    answer = make_answer()
    for _ in range(errands.MOST_REQUESTS):
        errand = ask(Errand.Kind.SUMMARY, answer)
        assert (errand.status, errand.failures) == ("queued", 0)
        assert errand.prompt
        errands.fail(errands.claim(errand.pk), is_final=True)
    assert ask(Errand.Kind.SUMMARY, answer) is None


def test_a_failed_title_is_not_asked_for_again():
    answer = make_answer()
    errands.fail(errands.claim(ask(Errand.Kind.TITLE, answer).pk), is_final=True)
    assert ask(Errand.Kind.TITLE, answer) is None


def test_what_a_dead_worker_had_is_offered_again_until_it_has_killed_too_many():
    errand = make_errand()
    for failures in range(1, errands.MOST_FAILURES + 1):
        assert errands.claim(errand.pk)
        queue.remove(shared_client(), [errand.pk])
        expire_lease(errand.pk)
        background.sweep()
        is_over = failures == errands.MOST_FAILURES
        assert waiting() == (not is_over)
        assert read_errand(errand.pk).status == ("failed" if is_over else "queued")
    assert read_errand(errand.pk).prompt == []


def test_what_a_live_worker_has_is_left_alone():
    errand = make_errand()
    attempt = errands.claim(errand.pk)
    make_older(errand.pk, minutes=60)
    assert background.sweep() == []
    assert errands.finish(attempt, "whole")


def test_what_redis_has_forgotten_is_offered_again():
    errand = make_errand()
    queue.remove(shared_client(), [errand.pk])
    background.sweep()
    assert waiting() == 0, "it was offered a moment ago"
    make_older(errand.pk, minutes=1)
    background.sweep()
    assert waiting() == 1


def test_what_waits_in_vain_past_its_deadline_is_given_up_with_its_words():
    errand = make_errand()
    Errand.objects.filter(pk=errand.pk).update(deadline=timezone.now() - timedelta(minutes=2))
    background.sweep()
    errand = read_errand(errand.pk)
    assert (errand.status, errand.prompt) == ("failed", [])


def test_what_was_written_and_never_settled_is_named_by_the_sweep():
    errand = written_errand("Rice")
    assert background.sweep() == []
    make_older(errand.pk, minutes=1)
    assert background.sweep() == [errand.pk]


def test_the_words_are_gone_once_it_is_settled():
    errand = written_errand("Rice")
    background.settle(errand.pk)
    errand = read_errand(errand.pk)
    assert (errand.status, errand.prompt, errand.text) == ("settled", [], "")
