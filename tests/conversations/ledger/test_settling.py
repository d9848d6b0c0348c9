"""However an answer ends, it is settled once: what was read and decoded is paid, and the rest is returned."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import quotas
from accounts.erasure.closing import request_erasure
from accounts.exceptions import TokensExceeded
from accounts.models import TokenReservation, UsageRecord, User
from conversations import tasks
from conversations.exceptions import IdempotencyConflict
from conversations.models import Conversation, Generation, Message
from conversations.services import attempts, claims, conversations, generations, requeueing
from conversations.services.messages import NewMessage, send
from conversations.services.outcomes import Outcome
from tests.accounts.factories import make_tier, make_user
from tests.conversations.ledger.books import assert_books_balance, used_and_reserved

pytestmark = pytest.mark.django_db
USED = {"tokens_in": 30, "tokens_cached": 10, "tokens_out": 5}


@pytest.fixture
def alice():
    return make_user("alice@example.com", tier="enterprise")


def ask(user, content="Hello", **fields):
    return send(user=user, conversation_id=None, message=NewMessage(content, **fields)).generation


def outcome(status="complete", **fields):
    return Outcome(status=Message.Status(status), finish_reason="stop", content="Hi", **fields)


def requests_used(user):
    return quotas.peek(user).requests.used


def tier_with(**limits):
    tier = make_tier(requests=10)
    type(tier).objects.filter(pk=tier.pk).update(**limits)
    return tier.pk


def test_an_answer_under_way_is_reserved_and_nothing_is_used(alice):
    generation = ask(alice)
    reservation = TokenReservation.objects.get()
    assert (reservation.pk, reservation.model) == (generation.pk, generation.model)
    assert reservation.tokens > generation.options["max_tokens"]
    assert used_and_reserved(alice) == (0, reservation.tokens)
    assert_books_balance()


@pytest.mark.parametrize("status", ["complete", "cancelled"])
def test_what_was_read_and_decoded_is_paid_and_the_rest_returned(alice, status):
    generation = ask(alice)
    assert attempts.finish(claims.claim(generation.pk), outcome(status, **USED, cost=Decimal("0.0123")))
    assert used_and_reserved(alice) == (35, 0)
    record = UsageRecord.objects.get()
    assert (record.pk, record.tokens_cached, record.cost) == (generation.pk, 10, Decimal("0.0123"))
    assert_books_balance()


def test_an_answer_that_failed_costs_nothing_and_its_request_is_given_back(alice):
    generation = ask(alice)
    assert requests_used(alice) == 1
    assert attempts.finish(claims.claim(generation.pk), outcome("failed", error_code="no_capacity"))
    quotas.settled(alice.pk, generation.pk, tokens_used=0)
    assert used_and_reserved(alice) == (0, 0)
    assert requests_used(alice) == 0
    assert_books_balance()


def test_one_that_is_cancelled_in_the_queue_costs_nothing_however_often_it_is_cancelled(alice):
    generation = ask(alice)
    for _ in range(2):
        generations.request_cancel(generation.pk)
    assert used_and_reserved(alice) == (0, 0)
    assert requests_used(alice) == 0
    assert UsageRecord.objects.get().tokens_in == 0
    assert_books_balance()


def test_one_that_nobody_took_in_time_costs_nothing(alice):
    generation = ask(alice)
    Generation.objects.update(deadline=timezone.now() - timedelta(minutes=1))
    assert [generations.give_up_overdue() for _ in range(2)] == [1, 0]
    generation.refresh_from_db()
    assert (generation.status, generation.error_code) == ("failed", "no_capacity")
    assert Message.objects.get(pk=generation.pk).status == "failed"
    assert used_and_reserved(alice) == (0, 0)
    assert_books_balance()


def test_of_two_workers_only_the_one_that_has_the_answer_settles_it(alice):
    generation = ask(alice)
    first = claims.claim(generation.pk)
    requeueing.hand_over(first, "Hal")
    second = claims.claim(generation.pk)
    assert not attempts.finish(first, outcome(tokens_in=9, tokens_out=9))
    assert not attempts.settle_deleted(first, outcome(tokens_in=9, tokens_out=9))
    assert_books_balance()
    assert attempts.finish(second, outcome(**USED))
    assert not attempts.finish(second, outcome(tokens_in=9, tokens_out=9))
    assert used_and_reserved(alice) == (35, 0)
    assert_books_balance()


def test_what_was_decoded_for_a_deleted_conversation_is_paid_once(alice):
    generation = ask(alice)
    attempt = claims.claim(generation.pk)
    conversations.delete(user=alice, conversation_id=generation.conversation_id)
    assert used_and_reserved(alice)[1] > 0, "its worker will say what was used"
    assert not attempts.finish(attempt, outcome("cancelled", **USED))
    assert [attempts.settle_deleted(attempt, outcome("cancelled", **USED)) for _ in range(2)] == [True, False]
    assert used_and_reserved(alice) == (35, 0)
    assert UsageRecord.objects.get().conversation_id == generation.conversation_id
    assert_books_balance()


@pytest.mark.parametrize("has_begun", [False, True])
def test_what_waits_in_a_deleted_conversation_is_returned(alice, has_begun):
    generation = ask(alice)
    if has_begun:
        requeueing.hand_over(claims.claim(generation.pk), "Hal")
    conversations.delete(user=alice, conversation_id=generation.conversation_id)
    assert used_and_reserved(alice) == (0, 0)
    assert_books_balance()


def test_a_deleted_user_leaves_no_record_to_be_written(alice):
    attempt = claims.claim(ask(alice).pk)
    Conversation.objects.all().delete()
    alice.delete()
    assert not attempts.finish(attempt, outcome("cancelled", **USED))
    assert not attempts.settle_deleted(attempt, outcome("cancelled", **USED))
    assert not UsageRecord.objects.exists()


def test_what_is_kept_for_a_generation_that_is_gone_comes_back_once(alice):
    under_way, gone = ask(alice), ask(alice)
    Conversation.objects.filter(pk=gone.conversation_id).delete()
    TokenReservation.objects.update(created_at=timezone.now() - timedelta(hours=1))
    kept = TokenReservation.objects.get(pk=under_way.pk).tokens
    assert [tasks.release_orphaned_reservations() for _ in range(2)] == [1, 0]
    assert used_and_reserved(alice) == (0, kept)
    assert_books_balance()


def test_a_repeated_message_is_reserved_once(alice):
    message, key = NewMessage("Hello"), "the same"
    first, second = (
        send(user=alice, conversation_id=None, message=message, idempotency_key=key).generation for _ in range(2)
    )
    assert first.pk == second.pk
    with pytest.raises(IdempotencyConflict):
        send(user=alice, conversation_id=None, message=NewMessage("Other"), idempotency_key=key)
    assert TokenReservation.objects.count() == 1
    assert requests_used(alice) == 1
    assert_books_balance()


def test_a_refused_message_leaves_nothing_behind():
    bob = make_user(tier=tier_with(tokens_per_day=100))
    with pytest.raises(TokensExceeded):
        ask(bob)
    assert (Conversation.objects.count(), Message.objects.count(), TokenReservation.objects.count()) == (0, 0, 0)
    assert requests_used(bob) == 0
    assert_books_balance()


def test_what_is_rolled_back_is_released(alice):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE conversations_generation ADD CONSTRAINT refuse_all CHECK (false) NOT VALID")
    with pytest.raises(IntegrityError, match="refuse_all"):
        ask(alice)
    assert requests_used(alice) == 0
    assert not TokenReservation.objects.exists()
    assert_books_balance()


def test_all_of_a_users_answers_are_stopped_and_nobody_elses(alice):
    waiting, running, others = ask(alice), ask(alice), ask(make_user(tier="enterprise"))
    claims.claim(running.pk)
    assert generations.stop_all_of(alice.pk) == 2
    states = dict(Generation.objects.values_list("pk", "status"))
    assert states == {waiting.pk: "cancelled", running.pk: "running", others.pk: "queued"}
    assert Generation.objects.get(pk=running.pk).cancel_requested_at
    assert Generation.objects.get(pk=others.pk).cancel_requested_at is None
    assert_books_balance()


def test_the_answers_of_a_closed_account_are_stopped_at_once(alice, django_capture_on_commit_callbacks):
    waiting, running = ask(alice), ask(alice)
    claims.claim(running.pk)
    with django_capture_on_commit_callbacks(execute=True):
        request_erasure(alice.pk)
    assert Generation.objects.get(pk=waiting.pk).status == "cancelled"
    assert Generation.objects.get(pk=running.pk).cancel_requested_at
    assert_books_balance()


def test_a_message_needs_one_statement_to_bound_it_and_one_to_reserve_it(alice):
    first = ask(alice)
    attempts.finish(claims.claim(first.pk), outcome(**USED))
    user = User.objects.select_related("tier").get(pk=alice.pk)
    with CaptureQueriesContext(connection) as captured:
        second = send(user=user, conversation_id=first.conversation_id, message=NewMessage("And now?")).generation
    sending = [each["sql"] for each in captured if "SAVEPOINT" not in each["sql"]]
    with CaptureQueriesContext(connection) as captured:
        attempts.finish(claims.claim(second.pk), outcome(**USED))
    answering = [each["sql"] for each in captured]
    assert (len(sending), len(answering)) == (4, 2), [*sending, *answering]
