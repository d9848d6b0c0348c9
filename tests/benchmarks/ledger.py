"""`python -m tests.benchmarks.ledger REPETITIONS`: measures what reserving and settling take, prints what it found.

A program of its own, because Django must know its database before the models are imported.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from accounts import quotas  # noqa: E402
from accounts.exceptions import AccountsError  # noqa: E402
from accounts.models import ModelLimit, Tier, User  # noqa: E402
from foundation.ids import new_id  # noqa: E402
from foundation.redis import shared_client  # noqa: E402
from tests.accounts import settling  # noqa: E402

CALLS_AT_ONCE = 500
THREADS = 20
ROOM = 7
TOKENS = 100
_PLENTY = {
    "requests_per_window": 1_000_000,
    "tokens_per_day": 10**12,
    "tokens_per_minute": 2 * 10**9,
    "concurrent_generations": 10**6,
}
_FULL_WINDOW = 200
"""How many requests the window of the measured user holds before it is measured."""


@dataclass
class Measured:
    """What one thing took; `statements` are those of its last call."""

    name: str
    times_ms: list[float] = field(default_factory=list)
    statements: int = 0


@dataclass
class Rush:
    """Many calls at once: how long all of them took, and how many were let in."""

    name: str
    seconds: float
    calls: int
    let_in: int
    times_ms: list[float]


def _user(name: str, **limits: int) -> User:
    tier = Tier.objects.create(name=f"ledger-{name}", **{**_PLENTY, **limits})
    ModelLimit.objects.create(tier=tier, model="dear", requests_per_window=50, tokens_per_day=10**9)
    user = User.objects.create_user(f"ledger-{name}@example.org", tier=tier)
    return User.objects.select_related("tier").get(pk=user.pk)


def _reserve(user: User) -> quotas.Wish:
    wish = quotas.Wish(new_id(), "small", TOKENS)
    with transaction.atomic():
        quotas.reserve(user, wish)
    return wish


def _settle(user: User, wish: quotas.Wish) -> None:
    settling.settle(
        generation_id=wish.generation_id,
        user_id=user.pk,
        conversation_id=None,
        model=wish.model,
        tokens_in=TOKENS // 2,
        tokens_cached=0,
        tokens_out=TOKENS // 4,
    )


@contextmanager
def _timed(measured: Measured) -> Iterator[None]:
    began = time.perf_counter()
    yield
    measured.times_ms.append((time.perf_counter() - began) * 1e3)


def _one_by_one(user: User, repetitions: int, *, where: str) -> list[Measured]:
    """Take each step of one answer's way through the ledger, again and again."""
    names = ("reserve", "settle", "tell Redis the end", "look at all limits")
    reserving, settling, telling, looking = steps = [Measured(f"{name}{where}") for name in names]
    for _ in range(repetitions):
        with _timed(reserving):
            wish = _reserve(user)
        with _timed(settling):
            _settle(user, wish)
        with _timed(telling):
            quotas.settled(user.pk, wish.generation_id, tokens_used=TOKENS * 3 // 4)
        with _timed(looking):
            quotas.limits_of(user)
    _count_statements(reserving, lambda: _reserve(user))
    wish = _reserve(user)
    _count_statements(settling, lambda: _settle(user, wish))
    _count_statements(looking, lambda: quotas.limits_of(user))
    return steps


def _count_statements(measured: Measured, call: Callable[[], Any]) -> None:
    with CaptureQueriesContext(connection) as captured:
        call()
    own = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    measured.statements = sum(not query["sql"].startswith(own) for query in captured)


def _first_looks(repetitions: int, user: User) -> Measured:
    """Look while Redis knows nothing of the user, as after it was emptied."""
    measured = Measured("the first look at all limits")
    for _ in range(repetitions):
        _forget(user)
        with _timed(measured):
            quotas.limits_of(user)
    _forget(user)
    _count_statements(measured, lambda: quotas.limits_of(user))
    return measured


def _forget(user: User) -> None:
    client = shared_client()
    client.delete(*client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*{user.pk}*"))


def _rush(name: str, users: list[User]) -> Rush:
    """Reserve from many threads at once, each call for the next of the users."""

    def attempt(number: int) -> tuple[bool, float]:
        began = time.perf_counter()
        try:
            _reserve(users[number % len(users)])
        except AccountsError:
            return False, (time.perf_counter() - began) * 1e3
        return True, (time.perf_counter() - began) * 1e3

    with ThreadPoolExecutor(THREADS) as pool:
        # Each thread's connection is opened before the clock runs.
        list(pool.map(lambda _: (connection.ensure_connection(), time.sleep(0.05)), range(THREADS)))
        began = time.perf_counter()
        made = list(pool.map(attempt, range(CALLS_AT_ONCE)))
        seconds = time.perf_counter() - began
        list(pool.map(lambda _: (connection.close(), time.sleep(0.05)), range(THREADS)))
    return Rush(name, seconds, CALLS_AT_ONCE, sum(is_in for is_in, _ in made), [each for _, each in made])


def _measure(repetitions: int) -> dict[str, Any]:
    user = _user("alone")
    for _ in range(_FULL_WINDOW):
        _settle(user, _reserve(user))
    steps = [*_one_by_one(user, repetitions, where=""), _first_looks(max(1, repetitions // 10), user)]
    rushes = [
        _rush("one user, room for 7 requests", [_user("requests", requests_per_window=ROOM)]),
        _rush("one user, tokens for 7 of a day", [_user("day", tokens_per_day=ROOM * TOKENS)]),
        _rush("one user, room for all", [_user("room")]),
        _rush("500 users", [_user(f"many-{number}") for number in range(CALLS_AT_ONCE)]),
    ]
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    shared_client.cache_clear()
    steps += _one_by_one(user, max(1, repetitions // 10), where=", Redis away")
    return {"steps": [asdict(each) for each in steps], "rushes": [asdict(each) for each in rushes]}


if __name__ == "__main__":
    json.dump(_measure(int(sys.argv[1])), sys.stdout)
