"""In which order rows are locked: whoever holds a subscription may change its user."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection, connections, transaction

from accounts.billing import subscriptions
from accounts.models import User
from accounts.stripe import syncing
from tests.running_site import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return cursor.fetchone()[0]


def test_taking_over_a_plan_of_stripes_does_not_hold_its_user(stripe, alice, customer, plus):
    ours = subscriptions.subscribe(alice, plus, provider="stripe", stripe_subscription_id="sub_1")

    def sync():
        with closing(connections["default"]):
            syncing.sync(customer)

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            subscriptions.lock(ours.pk)
            syncing_now = thread.submit(sync)
            wait_until(somebody_waits_for_a_lock, what="the plan that waits for the subscription")
            User.objects.select_for_update(nowait=True).get(pk=alice.pk)
        syncing_now.result(20)
    alice.refresh_from_db()
    assert alice.tier_id == "free"
