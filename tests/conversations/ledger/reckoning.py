"""The end of a history: all has ended, nothing is reserved, and everybody says the same of what was used."""

import asyncio

import aiohttp
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.db.models import Sum

from accounts import quotas
from accounts.models import TokenBudget, TokenReservation, UsageRecord, User
from conversations import tasks
from conversations.models import Generation
from foundation.redis import shared_client
from tests.accounts.erasure.steps import erase_wholly
from tests.api_client import text_of
from tests.conversations.ledger import mishaps
from tests.conversations.ledger.books import assert_books_balance
from tests.conversations.ledger.busy_site import make_tiers
from tests.conversations.ledger.histories import Answer, History
from tests.inference.core.waiting import until
from tests.running_site import RunningSite

_END_SECONDS = 90
_LAST_WORD_SECONDS = 6
DISTURBANCES = frozenset({"kill_a_worker", "freeze_the_workers", "cut_the_database"})
"""After these a worker's last word may be missing: tokens of deleted conversations come back by the upkeep then."""
AMNESIA = "forget_what_redis_holds"


async def live_through(site: RunningSite, session: aiohttp.ClientSession, steps: list[tuple[str, int, str]]) -> History:
    """Take the steps one after the other, come to an end, and settle."""
    history = History(site, session, await sync_to_async(make_tiers)())
    await history.begin()
    for step in steps:
        await history.do(*step)
    await reckon(history)
    return history


async def reckon(history: History) -> None:
    """Let everything come to its end, and compare all that is known of it."""
    await history.thaw_the_workers()
    await until(sync_to_async(_nothing_is_under_way), seconds=_END_SECONDS)
    await _readers_have_ended(history)
    await _nothing_is_reserved(history)
    for answer in history.answers:
        await sync_to_async(_assert_the_same_is_told)(answer, history)
    await sync_to_async(_assert_pools_are_charged_as_reserved)()
    await _limits_are_as_the_ledger_says(history)
    await _has_a_place(history)
    await sync_to_async(_erase)(history)
    await sync_to_async(assert_books_balance)()


def _nothing_is_under_way() -> bool:
    return not Generation.objects.under_way().exists()


async def _readers_have_ended(history: History) -> None:
    readers = [answer.reader for answer in history.answers if not answer.reader.done()]
    if readers:
        _, open_still = await asyncio.wait(readers, timeout=_LAST_WORD_SECONDS)
        assert not open_still, [answer.events for answer in history.answers if answer.reader in open_still]


async def _nothing_is_reserved(history: History) -> None:
    try:
        await until(sync_to_async(lambda: not TokenReservation.objects.exists()), seconds=_LAST_WORD_SECONDS)
    except TimeoutError:
        assert history.steps & DISTURBANCES, "a worker that lived has settled nothing"
        await sync_to_async(mishaps.let_reservations_grow_old)()
        assert await sync_to_async(tasks.release_orphaned_reservations)() > 0
    sums = await TokenBudget.objects.aaggregate(reserved=Sum("reserved"))
    assert not sums["reserved"]
    await sync_to_async(assert_books_balance)()


def _assert_the_same_is_told(answer: Answer, history: History) -> None:
    """The reader, the message and the ledger."""
    record = UsageRecord.objects.filter(pk=answer.id).first()
    generation = Generation.objects.select_related("message").filter(pk=answer.id).first()
    seen = text_of(answer.events)
    is_disturbed = bool(history.steps & DISTURBANCES)
    assert record is not None
    if generation is None:
        assert record.tokens_out or not seen or is_disturbed, "what was decoded for a deleted conversation is paid"
        return
    stored = generation.message.content
    if answer.is_done:
        used = {"in": record.tokens_in, "cached": record.tokens_cached, "out": record.tokens_out}
        assert (seen, answer.events[-1].data["usage"]) == (stored, used)
    elif not (is_disturbed and AMNESIA in history.steps):
        assert stored.startswith(seen), generation.status
    if generation.status == "complete" or (generation.status == "cancelled" and stored):
        assert min(record.tokens_in, record.tokens_out) > 0, ("what was written is paid", stored, generation.attempt)


def _assert_pools_are_charged_as_reserved() -> None:
    """Records know no pool: what was noted when they were reserved does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT user_id, day, pool, budget.used, charged.tokens FROM accounts_tokenbudget budget"
            " FULL JOIN (SELECT record.user_id, record.day, noted.pool, sum(tokens_in + tokens_out) AS tokens"
            "  FROM accounts_usagerecord record JOIN noted_reservation noted USING (generation_id) GROUP BY 1, 2, 3)"
            " charged USING (user_id, day, pool) WHERE COALESCE(budget.used, 0) <> COALESCE(charged.tokens, 0)"
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT record.* FROM accounts_usagerecord record JOIN noted_reservation noted USING (generation_id)"
            " WHERE tokens_in + tokens_out > noted.tokens"
        )
        assert cursor.fetchall() == [], "more was used than was reserved"


async def _limits_are_as_the_ledger_says(history: History) -> None:
    """Redis counts what PostgreSQL knows, unless a worker died between its commit and its last word."""
    user = await User.objects.select_related("tier").aget(pk=history.user.pk)

    def is_counted_alike() -> bool:
        return _counted(user) == _counted_without_redis(user)

    if not history.steps & DISTURBANCES:
        await until(sync_to_async(is_counted_alike), seconds=_LAST_WORD_SECONDS)


def _counted(user: User) -> dict[tuple[str, str | None], int]:
    # The tokens of the last minute are counted from their beginning there, and from their end here.
    limits = quotas.limits_of(user)
    return {(limit.name, limit.model): limit.used for limit in limits if limit.name != "tokens_per_minute"}


def _counted_without_redis(user: User) -> dict[tuple[str, str | None], int]:
    here = settings.REDIS_URL
    try:
        _point_at("redis://127.0.0.1:1/0")
        return _counted(user)
    finally:
        _point_at(here)


def _point_at(url: str) -> None:
    settings.REDIS_URL = url
    shared_client.cache_clear()


async def _has_a_place(history: History) -> None:
    """Nobody is locked out by what has ended."""
    history.number, history.phase = 0, "done"
    before = _told_that_none_is_free(history)
    await history.send()
    assert _told_that_none_is_free(history) == before
    await until(sync_to_async(_nothing_is_under_way), seconds=_END_SECONDS)


def _told_that_none_is_free(history: History) -> int:
    return sum(count for told, count in history.seen.items() if "concurrency_exceeded" in told)


def _erase(history: History) -> None:
    for erasure_id in history.erasures:
        erase_wholly(erasure_id)
