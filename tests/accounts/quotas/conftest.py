"""Reserving and settling, each in one line; Redis that is away, or has forgotten."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import redis
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts import quotas
from accounts.exceptions import AccountsError
from accounts.models import Tier, UsageRecord
from foundation.ids import new_id
from foundation.redis import shared_client
from tests.accounts import settling
from tests.accounts.factories import make_tier, make_user


class RedisSwitch:
    """Points at a port where nothing listens, and back."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.here = monkeypatch, settings.REDIS_URL

    def turn_off(self):
        self._point_at("redis://127.0.0.1:1/0")

    def turn_on(self):
        self._point_at(self.here)

    def _point_at(self, url):
        self.monkeypatch.setattr(settings, "REDIS_URL", url)
        shared_client.cache_clear()


@pytest.fixture
def redis_switch(monkeypatch):
    switch = RedisSwitch(monkeypatch)
    yield switch
    switch.turn_on()


@pytest.fixture
def redis_is_away(redis_switch):
    redis_switch.turn_off()


def forget_everything():
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for name in client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*"):
            client.delete(name)


def make_user_with(*, requests=1000, window_seconds=3600, **limits):
    """Make a user of a tier of its own with these limits."""
    tier = make_tier(requests=requests, window_seconds=window_seconds)
    Tier.objects.filter(pk=tier.pk).update(**limits)
    return make_user(tier=tier.pk)


def reserve(user, tokens=10, *, model="small", generation_id=None):
    return quotas.reserve(user, quotas.Wish(generation_id or new_id(), model, tokens))


def settle(user, generation_id, tokens_in=0, tokens_out=0, *, model="small"):
    settling.settle(
        generation_id=generation_id,
        user_id=user.pk,
        conversation_id=None,
        model=model,
        tokens_in=tokens_in,
        tokens_cached=0,
        tokens_out=tokens_out,
    )
    quotas.settled(user.pk, generation_id, tokens_used=tokens_in + tokens_out)


def use(user, *, ago=timedelta(), tokens=2, model="small", day=None):
    """Record what was used some time ago; a day's budget is left alone."""
    return UsageRecord.objects.create(
        generation_id=new_id(), user=user, model=model, tokens_in=tokens, tokens_out=0,
        created_at=timezone.now() - ago, day=day or timezone.now().date(),
    )  # fmt: skip


def admitted_of(attempts, user, *, threads=20, **wish):
    """Reserve so many times at once, each in a transaction of its own; return how many were let in."""

    def attempt(_):
        try:
            with transaction.atomic():
                reserve(user, **wish)
        except AccountsError:
            return 0
        finally:
            connection.close()
        return 1

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(attempt, range(attempts)))
