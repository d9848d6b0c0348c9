"""A worker's writes count while the generation is its own, once, and in no order do they lock each other out."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import UsageRecord
from conversations.context.material import Said
from conversations.models import Conversation, Generation, Message
from conversations.services import attempts, claims, requeueing
from conversations.services.attempts import LiveText
from conversations.services.conversations import delete
from conversations.services.outcomes import Outcome
from foundation.ids import new_id
from inference.jobs import Job, estimated_tokens
from tests.accounts.factories import make_user
from tests.inference.core.factories import expire_lease, make_attempt, make_generation, read_generation

pytestmark = pytest.mark.django_db
in_threads = pytest.mark.django_db(transaction=True)


def outcome(content="The answer.", **fields):
    values = {"status": Message.Status.COMPLETE, "finish_reason": "stop", "tokens_in": 7, "tokens_out": 3, **fields}
    return Outcome(content=content, **values)


def live(attempt, text):
    return LiveText(attempt.generation_id, attempt.number, text)


def at_once(calls):
    """Call each in a thread of its own, all at the same moment, and return what they return."""
    start = threading.Barrier(len(calls))

    def run(call):
        try:
            start.wait(20)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result(60) for future in [threads.submit(run, call) for call in calls]]


def taken_over(attempt):
    """Let the attempt's worker be believed dead, and another take the generation."""
    expire_lease(attempt.generation_id)
    requeueing.lost_jobs()
    heir = claims.claim(attempt.generation_id)
    assert heir is not None
    return heir


def state_of(generation_id):
    generation = read_generation(generation_id)
    message = generation.message
    return (generation.status, generation.attempt, message.status, message.content, message.tokens_out)


def test_a_claim_tells_all_that_is_needed_to_write():
    conversation = Conversation.objects.create(user=make_user(), instructions="Be brief.")
    generation = make_generation(conversation, options={"max_tokens": 5, "stop": ["x"]}, is_background=True)
    attempt = claims.claim(generation.pk)
    assert attempt.number == 1
    assert attempt.user_id == conversation.user_id
    assert attempt.conversation_id == conversation.pk
    assert attempt.opening.last == Said(generation.message.parent_id, "user", "What?")
    assert attempt.options == {"max_tokens": 5, "stop": ["x"]}
    assert attempt.opening.instructions == "Be brief."
    assert (attempt.is_background, attempt.is_cancelled, attempt.is_overdue) == (True, False, False)
    assert state_of(generation.pk)[:3] == ("running", 1, "running")


def test_a_claim_knows_of_a_cancel_and_of_a_deadline_that_passed():
    cancelled = claims.claim(make_generation(cancel_requested_at=timezone.now()).pk)
    overdue = claims.claim(make_generation(deadline=timezone.now() - timedelta(seconds=1)).pk)
    assert (cancelled.is_cancelled, cancelled.is_overdue) == (True, False)
    assert (overdue.is_cancelled, overdue.is_overdue) == (False, True)


def test_a_generation_that_had_begun_is_never_overdue():
    generation = make_generation(deadline=timezone.now() - timedelta(seconds=1), attempt=1)
    assert claims.claim(generation.pk).is_overdue is False


@in_threads
def test_of_twenty_workers_one_gets_the_generation():
    generation = make_generation()
    taken = at_once([lambda: claims.claim(generation.pk)] * 20)
    assert len([each for each in taken if each is not None]) == 1
    assert state_of(generation.pk)[:2] == ("running", 1)


@pytest.mark.parametrize("status", ["running", "complete", "cancelled", "failed", "blocked"])
def test_only_what_waits_can_be_claimed(status):
    assert claims.claim(make_generation(status=status).pk) is None


def test_what_does_not_exist_cannot_be_claimed():
    assert claims.claim(new_id()) is None


def test_a_checkpoint_saves_the_text_and_renews_the_lease():
    attempt = make_attempt()
    expire_lease(attempt.generation_id)
    assert attempts.checkpoint([live(attempt, "So far")]) == {attempt.generation_id: False}
    assert state_of(attempt.generation_id)[3] == "So far"
    assert read_generation(attempt.generation_id).lease_expires_at > timezone.now()
    assert requeueing.lost_jobs() == []


def test_a_checkpoint_without_news_leaves_the_text_and_renews_the_lease():
    attempt = make_attempt(content="Kept")
    expire_lease(attempt.generation_id)
    attempts.checkpoint([live(attempt, None)])
    assert state_of(attempt.generation_id)[3] == "Kept"
    assert requeueing.lost_jobs() == []


def test_a_checkpoint_of_many_generations_is_one_statement():
    several = [make_attempt() for _ in range(30)]
    with CaptureQueriesContext(connection) as queries:
        attempts.checkpoint([live(each, f"text {number}") for number, each in enumerate(several)])
    assert len(queries) == 1
    contents = dict(Message.objects.values_list("pk", "content"))
    assert [contents[each.generation_id] for each in several] == [f"text {number}" for number in range(30)]


@pytest.mark.parametrize("text", ["\u2028\u0085 🤗", "{a,b}", '"\\', "NULL", "", "'; --", "%s"])
def test_a_checkpoint_keeps_odd_text_as_it_is(text):
    attempt = make_attempt()
    attempts.checkpoint([live(attempt, text)])
    assert state_of(attempt.generation_id)[3] == text


def test_a_checkpoint_tells_which_were_cancelled_and_which_are_ours_no_more():
    kept, cancelled, lost, ended = (make_attempt() for _ in range(4))
    Generation.objects.filter(pk=cancelled.generation_id).update(cancel_requested_at=timezone.now())
    taken_over(lost)
    attempts.finish(ended, outcome())
    told = attempts.checkpoint([live(each, "text") for each in (kept, cancelled, lost, ended)])
    assert told == {kept.generation_id: False, cancelled.generation_id: True}


def test_the_end_is_stored_whole():
    attempt = make_attempt()
    with CaptureQueriesContext(connection) as queries:
        assert attempts.finish(attempt, outcome("All of it.", replica="http://r", model_version="m")) is True
    assert len(queries) == 1
    generation = read_generation(attempt.generation_id)
    assert (generation.status, generation.finish_reason, generation.replica) == ("complete", "stop", "http://r")
    assert generation.finished_at is not None
    assert generation.lease_expires_at is None
    assert (generation.message.status, generation.message.content) == ("complete", "All of it.")
    assert (generation.message.tokens_in, generation.message.tokens_out) == (7, 3)
    record = UsageRecord.objects.get()
    assert (record.generation_id, record.user_id) == (attempt.generation_id, attempt.user_id)
    assert (record.tokens_in, record.tokens_out) == (7, 3)


@in_threads
def test_the_end_counts_once_however_often_it_is_written():
    attempt = make_attempt()
    told = at_once([lambda: attempts.finish(attempt, outcome())] * 8)
    assert sorted(told) == [False] * 7 + [True]
    assert UsageRecord.objects.count() == 1


def test_an_end_does_not_replace_another():
    attempt = make_attempt()
    attempts.finish(attempt, outcome("first"))
    assert attempts.finish(attempt, outcome("second", tokens_out=99)) is False
    assert state_of(attempt.generation_id)[3:] == ("first", 3)


def test_a_zombie_changes_nothing():
    zombie = make_attempt()
    heir = taken_over(zombie)
    attempts.checkpoint([live(heir, "the heir's")])
    before = state_of(zombie.generation_id)
    updated_at = Conversation.objects.get().updated_at
    assert attempts.checkpoint([live(zombie, "the zombie's")]) == {}
    assert attempts.finish(zombie, outcome("the zombie's")) is False
    assert requeueing.hand_over(zombie, "the zombie's") is None
    assert state_of(zombie.generation_id) == before == ("running", 2, "running", "the heir's", None)
    assert Conversation.objects.get().updated_at == updated_at
    assert not UsageRecord.objects.exists()


def test_a_zombie_changes_nothing_after_the_end_either():
    zombie = make_attempt()
    attempts.finish(taken_over(zombie), outcome("the heir's"))
    assert attempts.finish(zombie, outcome("the zombie's", tokens_out=50)) is False
    assert attempts.checkpoint([live(zombie, "the zombie's")]) == {}
    assert state_of(zombie.generation_id) == ("complete", 2, "complete", "the heir's", 3)
    assert UsageRecord.objects.count() == 1


def test_what_is_handed_over_waits_again_with_its_text():
    attempt = make_attempt(priority_class="plus")
    job = requeueing.hand_over(attempt, "So far")
    assert (job.generation_id, job.priority_class, job.model) == (attempt.generation_id, "plus", "small")
    assert job.user_id == attempt.user_id
    assert requeueing.hand_over(attempt, "again") is None
    heir = claims.claim(attempt.generation_id)
    assert (heir.number, heir.checkpointed_text) == (2, "So far")


def test_an_expired_lease_gives_the_generation_back_once():
    attempt = make_attempt(priority_class="plus")
    assert requeueing.lost_jobs() == []
    expire_lease(attempt.generation_id)
    (job,) = requeueing.lost_jobs()
    assert (job.generation_id, job.priority_class, job.user_id) == (attempt.generation_id, "plus", attempt.user_id)
    assert requeueing.lost_jobs() == []
    assert claims.claim(attempt.generation_id).number == 2


def test_what_the_queue_may_have_forgotten_is_offered_again_but_not_at_once():
    generation = make_generation()
    assert requeueing.lost_jobs() == []
    Generation.objects.update(enqueued_at=timezone.now() - timedelta(seconds=10))
    generation.refresh_from_db()
    assert requeueing.lost_jobs() == [
        Job(generation.pk, "free", "small", generation.user_id, generation.deadline, estimated_tokens(0, 100))
    ]
    assert requeueing.lost_jobs() == []


def test_what_had_begun_gets_the_whole_time_to_be_begun_again():
    attempt = make_attempt(deadline=timezone.now() - timedelta(seconds=1))
    expire_lease(attempt.generation_id)
    (job,) = requeueing.lost_jobs()
    assert job.deadline > timezone.now() + timedelta(seconds=60)


def test_what_has_ended_is_never_offered_again():
    long_ago = timezone.now() - timedelta(days=1)
    for status in ("complete", "cancelled", "failed", "blocked"):
        make_generation(status=status, lease_expires_at=long_ago, enqueued_at=long_ago)
    assert requeueing.lost_jobs() == []


@in_threads
def test_sweepers_at_once_share_what_was_lost():
    lost = {make_attempt().generation_id for _ in range(20)}
    for each in lost:
        expire_lease(each)
    offered = [job.generation_id for share in at_once([requeueing.lost_jobs] * 6) for job in share]
    assert len(offered) == len(set(offered))
    assert set(offered) == lost


def test_the_lease_lasts_as_long_as_the_settings_say():
    attempt = make_attempt()
    remaining = read_generation(attempt.generation_id).lease_expires_at - timezone.now()
    assert timedelta(0) < remaining <= timedelta(seconds=settings.LEASE_SECONDS)


def test_nothing_brings_a_deleted_conversation_back():
    attempt = make_attempt()
    Conversation.objects.get().delete()
    assert attempts.checkpoint([live(attempt, "text")]) == {}
    assert attempts.finish(attempt, outcome()) is False
    assert requeueing.hand_over(attempt, "text") is None
    assert claims.claim(attempt.generation_id) is None
    for table in (Conversation, Message, Generation, UsageRecord):
        assert not table.objects.exists()


@in_threads
def test_ends_checkpoints_and_deletions_at_once_never_lock_each_other_out():
    for _ in range(20):
        user = make_user()
        conversations = [Conversation.objects.create(user=user) for _ in range(3)]
        ids = [conversation.pk for conversation in conversations]
        running = [make_attempt(conversation) for conversation in conversations for _ in range(4)]
        texts = [live(each, "text") for each in running]
        at_once(
            [
                lambda running=running: [attempts.finish(each, outcome()) for each in running[::4]],
                lambda running=running: [requeueing.hand_over(each, "text") for each in running[1::4]],
                lambda texts=texts: [attempts.checkpoint(texts) for _ in range(5)],
                lambda texts=texts: [attempts.checkpoint(texts[::-1]) for _ in range(5)],
                lambda user=user, ids=ids: delete(user=user, conversation_id=ids[0]),
                lambda user=user, ids=ids: delete(user=user, conversation_id=ids[1]),
                requeueing.lost_jobs,
            ]
        )
        assert not Message.objects.filter(conversation_id__in=ids[:2]).exists()
        assert Generation.objects.filter(conversation_id=ids[2], status="complete").count() == 1
