"""An erasure goes on from wherever it was left, by any number at once, and what comes late does not stay."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.utils import timezone
from structlog.testing import capture_logs

from accounts import tasks
from accounts.billing import mails
from accounts.billing.subscriptions import subscribe
from accounts.erasure import progress, receipts, stores, work
from accounts.erasure.closing import request_erasure
from accounts.metrics import OVERDUE_ERASURES
from accounts.models import APIKey, Erasure, User
from conversations.models import Conversation, Memory
from tests.accounts.billing.making import make_plan
from tests.accounts.erasure.everything import fill, rows_with
from tests.accounts.erasure.steps import erase_from_every_store, erase_wholly
from tests.accounts.factories import make_key, make_user
from tests.running_site import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WORD = "canarybird"


@pytest.fixture
def extra_store():
    """Registers a store for the test alone."""
    yield stores.register
    stores._stores.pop("the test's", None)


def counts_of(erasure):
    return {entry["name"]: entry["erased"] for entry in erasure.stores}


def test_killed_after_any_store_it_goes_on_and_counts_nothing_twice():
    whole = counts_of(erase_wholly(request_erasure(fill(WORD)[0].pk).pk))
    erasure_id = request_erasure(fill(WORD)[0].pk).pk
    while erase_from_every_store(erasure_id, most_steps=1):
        for name in progress.done_names(Erasure.objects.get(pk=erasure_id)):
            work.erase_from(erasure_id, name)
        assert not work.end(erasure_id)
    assert counts_of(erase_wholly(erasure_id)) == whole
    assert rows_with(WORD) == {}


def test_killed_in_the_midst_of_a_store_nothing_of_it_is_erased_or_counted(extra_store):
    user = make_user()
    make_key(user)

    class Killed(BaseException):
        pass

    def erase_and_die(user_id):
        APIKey.objects.filter(user=user_id).delete()
        raise Killed

    extra_store("the test's", erase_and_die)
    erasure_id = request_erasure(user.pk).pk
    with pytest.raises(Killed):
        work.erase_from(erasure_id, "the test's")
    assert APIKey.objects.filter(user=user).exists()
    assert "the test's" not in counts_of(Erasure.objects.get(pk=erasure_id))


def test_the_mail_about_the_last_invoice_is_sent_once_before_the_address_goes(mailoutbox):
    user = make_user()
    subscribe(user, make_plan("10.00"), at=timezone.now() - timedelta(days=3))
    erasure_id = request_erasure(user.pk).pk
    work.erase_from(erasure_id, "conversations")
    assert "billing" in work.erase_from(erasure_id, "last invoices")
    for _ in range(2):
        with pytest.raises(stores.NotYet):
            work.erase_from(erasure_id, "billing")
    assert mailoutbox == [], "what an erasure that waits has sent would be sent again"
    for _ in range(2):
        mails.send_owed()
    work.erase_from(erasure_id, "billing")
    (sent,) = mailoutbox
    assert sent.to == [user.email]
    assert "invoice" in sent.subject
    assert "billing" in progress.done_names(Erasure.objects.get(pk=erasure_id))


def test_a_store_that_fails_holds_up_no_other_but_the_end(extra_store):
    is_broken = [True]

    def erase(user_id):
        if is_broken[0]:
            raise OSError
        return 0

    extra_store("the test's", erase)
    user, _ = fill(WORD)
    erasure_id = request_erasure(user.pk).pk
    for name in [store.name for store in stores.all_stores()]:
        try:
            work.erase_from(erasure_id, name)
        except OSError:
            assert name == "the test's"
    receipts.mail(erasure_id)
    assert not Memory.objects.exists()
    assert not work.end(erasure_id)
    assert work.begin(erasure_id) == ["the test's"]
    assert User.objects.filter(pk=user.pk).exists()
    is_broken[0] = False
    erase_wholly(erasure_id)
    assert not User.objects.filter(pk=user.pk).exists()


def test_three_at_once_erase_and_count_each_thing_once():
    whole = counts_of(erase_wholly(request_erasure(fill(WORD)[0].pk).pk))
    erasure_id = request_erasure(fill(WORD)[0].pk).pk

    def erase():
        with closing(connections["default"]):
            return erase_wholly(erasure_id)

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(erase) for _ in range(3)]:
            done.result(60)
    assert counts_of(Erasure.objects.get(pk=erasure_id)) == whole


def test_what_was_committed_after_its_store_was_done_is_erased_with_the_account():
    user = make_user()
    erasure_id = request_erasure(user.pk).pk
    erase_from_every_store(erasure_id)
    Memory.objects.create(user=user, content="Late.", origin="written", confirmed_at=timezone.now())
    receipts.mail(erasure_id)
    assert not work.end(erasure_id)
    assert work.end(erasure_id)
    assert not Memory.objects.exists()
    assert counts_of(Erasure.objects.get(pk=erasure_id))["memories"] == 1


def test_a_transaction_that_is_still_open_when_the_account_goes_cannot_be_committed():
    user = make_user()
    erasure_id = request_erasure(user.pk).pk

    def erase():
        with closing(connections["default"]):
            erase_wholly(erasure_id)

    @transaction.atomic
    def write_while_it_is_erased():
        Conversation.objects.create(user=user, title="Late")
        with ThreadPoolExecutor(1) as thread:
            thread.submit(erase).result(60)

    with pytest.raises(IntegrityError):
        write_while_it_is_erased()
    assert not Conversation.objects.exists()
    assert not User.objects.filter(pk=user.pk).exists()


def test_the_end_waits_for_a_commit_that_has_begun_and_erases_what_it_wrote():
    user = make_user()
    erasure_id = request_erasure(user.pk).pk
    erase_from_every_store(erasure_id)
    receipts.mail(erasure_id)

    def end():
        with closing(connections["default"]):
            return work.end(erasure_id)

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Conversation.objects.create(user=user, title="Late")
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            ending = thread.submit(end)
            wait_until(_somebody_waits_for_a_lock, what="the end that waits")
        assert not ending.result(60)
    erase_wholly(erasure_id)
    assert not Conversation.objects.exists()


def _somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return cursor.fetchone()[0]


def test_an_account_whose_row_is_gone_already_is_erased():
    user = make_user()
    erasure_id = request_erasure(user.pk).pk
    User.objects.filter(pk=user.pk).delete()
    erase_from_every_store(erasure_id)
    Erasure.objects.filter(pk=erasure_id).update(mailed_at=timezone.now())
    assert work.end(erasure_id)


def test_an_erasure_that_takes_long_is_told(time_machine):
    erasure = request_erasure(make_user().pk)
    assert work.take_up() == [erasure.pk]
    assert OVERDUE_ERASURES._value.get() == 0
    time_machine.move_to(erasure.requested_at.replace(year=erasure.requested_at.year + 1))
    with capture_logs() as lines:
        work.take_up()
    assert [line["erasure_id"] for line in lines if line["event"] == "erasure_takes_long"] == [str(erasure.pk)]
    assert OVERDUE_ERASURES._value.get() == 1
    erase_wholly(erasure.pk)
    assert work.take_up() == []
    assert OVERDUE_ERASURES._value.get() == 0


def test_each_task_may_run_twice():
    user, _ = fill(WORD)
    erasure_id = str(request_erasure(user.pk).pk)
    for _ in range(2):
        for store in stores.all_stores():
            tasks.erase_from_store(erasure_id, store.name)
        tasks.mail_receipt(erasure_id)
        tasks.end_erasure(erasure_id)
    for _ in range(2):
        tasks.end_erasure(erasure_id)
        tasks.work_on_erasure(erasure_id)
        tasks.take_up_erasures()
        tasks.delete_outlived_receipts()
    assert not User.objects.filter(pk=user.pk).exists()
    assert Erasure.objects.get(pk=erasure_id).completed_at
