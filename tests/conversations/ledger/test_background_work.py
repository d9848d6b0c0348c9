"""What is summed, billed and written down by the clock: in the middle of it, holding all its locks, no answer waits."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import timezone

from accounts import rollups
from accounts.billing import closing, mails, subscriptions
from accounts.billing.months import Month
from accounts.models import BillingMail, DailyUsage, Subscription, User
from tests.accounts.billing.making import make_invoice, make_plan, make_usage

MOST_SECONDS = 20


@asynccontextmanager
async def in_the_middle_of(work):
    """Do some work in another thread, and keep what it locked until the block ends."""
    is_done, may_end = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic():
                count = work()
                is_done.set()
                assert may_end.wait(60)
            return count
        finally:
            is_done.set()
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(hold)
        await asyncio.to_thread(is_done.wait, 30)
        try:
            yield
        finally:
            may_end.set()
        assert await asyncio.wrap_future(held), "there was nothing to do"


def close_a_month(alice):
    last_month = Month.of(timezone.now()).start - timedelta(days=3)
    subscription = subscriptions.subscribe(alice, make_plan("10.00", included="0.00"), at=last_month)
    make_usage(alice, "3.00", last_month)
    return lambda: closing.close_months(subscription.pk, timezone.now())


def end_a_grace(alice):
    subscription = subscriptions.subscribe(alice, make_plan("10.00"), at=timezone.now() - timedelta(days=40))
    Subscription.objects.filter(pk=subscription.pk).update(status="past_due", grace_until=timezone.now())
    return lambda: subscriptions.end_graces(timezone.now())


def send_a_mail(alice):
    make_invoice(alice)
    return lambda: mails.send_owed() or BillingMail.objects.exclude(sent_at=None).count()


def sum_the_days(alice):
    for days in range(3):
        make_usage(alice, "1.00", timezone.now() - timedelta(days=days))
    return lambda: rollups.roll_up_recent(days=3) or DailyUsage.objects.filter(user=alice).count()


@pytest.mark.parametrize("prepare", [close_a_month, end_a_grace, send_a_mail, sum_the_days])
async def test_an_answer_does_not_wait_for_what_is_done_in_the_background(alice, prepare):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, "Hello")
    work = await sync_to_async(lambda: prepare(User.objects.get(email="alice@example.com")))()
    async with in_the_middle_of(work), asyncio.timeout(MOST_SECONDS):
        events = await alice.send(conversation_id, "Hello again")
    assert events[-1].data["finish_reason"] == "stop"
