"""Whatever happens in whatever order, the ledger adds up, and nobody uses more than a day allows."""

from collections import defaultdict
from datetime import timedelta

import pytest
from django.conf import settings as site
from django.db import connection, transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from accounts import quotas
from accounts.exceptions import AccountsError
from accounts.models import ModelLimit, TokenBudget, TokenReservation, UsageRecord
from accounts.quotas.rules import forget_own_limits
from accounts.tasks import count_reservations_again
from foundation.ids import new_id
from foundation.redis import shared_client
from tests.accounts.factories import make_tier
from tests.accounts.quotas.conftest import forget_everything, make_user_with, reserve, settle

LIMITS = {"requests": 12, "tokens_per_day": 400, "tokens_per_minute": 5000, "concurrent_generations": 4}
LIMIT_OF_POOL = {"": 400, "dear": 150}


class Account(RuleBasedStateMachine):
    """One user; the model of the ledger is what was let in, and what ended with how much, each on its day."""

    def __init__(self):
        super().__init__()
        self.user = make_user_with(**LIMITS)
        self.user.refresh_from_db()
        self.tiers = [self.user.tier, make_tier(requests=6)]
        ModelLimit.objects.create(
            tier=self.tiers[0], model="dear", requests_per_window=5, tokens_per_day=LIMIT_OF_POOL["dear"]
        )
        forget_own_limits()
        self.under_way = {}
        self.used = defaultdict(int)
        self.ended = set()
        self.days_past = 0
        self.is_as_at_first = True
        self.redis_url = site.REDIS_URL

    def teardown(self):
        self.point_at(self.redis_url)

    @staticmethod
    def point_at(url):
        site.REDIS_URL = url
        shared_client.cache_clear()

    def pool_of(self, model):
        return "dear" if model == "dear" and self.user.tier == self.tiers[0] else ""

    @rule(tokens=st.integers(1, 200), model=st.sampled_from(["small", "dear"]))
    def reserve(self, tokens, model):
        self.try_to_reserve(tokens, model)

    @rule(tokens=st.integers(1, 200), model=st.sampled_from(["small", "dear"]))
    def reserve_in_a_transaction_that_is_rolled_back(self, tokens, model):
        generation_id = new_id()
        before = self.told()
        with transaction.atomic():
            try:
                reserve(self.user, tokens, model=model, generation_id=generation_id)
            except AccountsError:
                return
            transaction.set_rollback(True)
        quotas.release(self.user.pk, generation_id)
        self.assert_nothing_was_counted_since(before)

    def try_to_reserve(self, tokens, model):
        generation_id, before = new_id(), self.told()
        try:
            reserve(self.user, tokens, model=model, generation_id=generation_id)
        except AccountsError:
            self.assert_nothing_was_counted_since(before)
        else:
            self.under_way[generation_id] = (model, self.pool_of(model), tokens, self.days_past)

    def assert_nothing_was_counted_since(self, before):
        # Less may be: places of those who left without a word are found when they are needed.
        assert all(used <= before[limit] for limit, used in self.told().items())

    def told(self):
        return {(limit.name, limit.model): limit.used for limit in quotas.limits_of(self.user)}

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def settle_or_cancel(self, data):
        generation_id = data.draw(st.sampled_from(sorted(self.under_way)))
        model, pool, tokens, day = self.under_way.pop(generation_id)
        read = data.draw(st.integers(0, tokens))
        written = data.draw(st.integers(0, tokens - read))
        settle(self.user, generation_id, read, written, model=model)
        self.used[day, pool] += read + written
        self.ended.add(generation_id)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def fail(self, data):
        generation_id = data.draw(st.sampled_from(sorted(self.under_way)))
        model, *_ = self.under_way.pop(generation_id)
        settle(self.user, generation_id, model=model)
        self.ended.add(generation_id)

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def settle_again(self, data):
        settle(self.user, data.draw(st.sampled_from(sorted(self.ended))), 50, 50)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def lose_a_generation(self, data):
        generation_id = data.draw(st.sampled_from(sorted(self.under_way)))
        self.under_way.pop(generation_id)
        old = TokenReservation.objects.get(pk=generation_id).created_at - timedelta(minutes=20)
        TokenReservation.objects.filter(pk=generation_id).update(created_at=old)
        assert quotas.release_orphans(lambda asked: set(self.under_way)) >= 1
        self.ended.add(generation_id)

    @rule()
    def redis_is_emptied(self):
        if self.redis_url == site.REDIS_URL:
            forget_everything()

    @rule()
    def redis_goes_away(self):
        self.point_at("redis://127.0.0.1:1/0")

    @rule()
    def redis_comes_back(self):
        self.point_at(self.redis_url)
        count_reservations_again()

    @rule()
    def midnight_passes(self):
        for rows in (TokenReservation, TokenBudget, UsageRecord):
            for row in rows.objects.filter(user=self.user).order_by("day"):
                rows.objects.filter(pk=row.pk).update(day=row.day - timedelta(days=1))
        self.days_past += 1

    @rule(number=st.sampled_from([0, 1]))
    def tier_changes(self, number):
        self.user.tier = self.tiers[number]
        self.user.save()
        self.is_as_at_first &= number == 0

    @invariant()
    def budgets_are_the_sums_of_their_parts(self):
        expected = defaultdict(lambda: [0, 0])
        for (day, pool), tokens in self.used.items():
            expected[day, pool][0] += tokens
        for _, pool, tokens, day in self.under_way.values():
            expected[day, pool][1] += tokens
        with connection.cursor() as cursor:
            cursor.execute("SELECT (now() AT TIME ZONE 'UTC')::date")
            (today,) = cursor.fetchone()
        found = {
            (self.days_past - (today - each.day).days, each.pool): [each.used, each.reserved]
            for each in TokenBudget.objects.filter(user=self.user)
        }
        assert {key: value for key, value in found.items() if any(value)} == {
            key: value for key, value in expected.items() if any(value)
        }

    @invariant()
    def what_is_under_way_is_reserved_and_what_ended_is_recorded(self):
        reserved = TokenReservation.objects.filter(user=self.user).values_list("pk", flat=True)
        recorded = UsageRecord.objects.filter(user=self.user).values_list("pk", flat=True)
        assert (set(reserved), set(recorded)) == (set(self.under_way), self.ended)

    @precondition(lambda self: self.is_as_at_first)
    @invariant()
    def no_day_takes_more_than_its_limit(self):
        for budget in TokenBudget.objects.filter(user=self.user):
            assert budget.used + budget.reserved <= LIMIT_OF_POOL[budget.pool]


@pytest.mark.django_db
def test_the_ledger_adds_up_after_any_history():
    run_state_machine_as_test(Account, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
