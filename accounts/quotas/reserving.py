"""Reserve, settle, release: what a generation may use is kept before it is queued."""

from dataclasses import replace
from uuid import UUID

import redis.asyncio
import structlog

from accounts.exceptions import AccountsError
from accounts.models import SHARED_POOL, User
from accounts.quotas import budgets, ledger, refusals, windows
from accounts.quotas.allowances import Allowance, Limit, allowance_of, limits_of_pool, limits_over_all
from accounts.quotas.budgets import Today
from accounts.quotas.counts import Counts, RefusedBy, Wish
from accounts.quotas.rules import Rules, rules_for, rules_of_all_pools
from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)

_UNKNOWN_AFTER_MS = 60_000
"""How long a place is held for a generation of which the database knows nothing: its transaction may be under way."""


def reserve(user: User, wish: Wish) -> Allowance:
    """Keep what a generation may use, in the caller's transaction: exact, however many come at once.

    Counts that Redis keeps do not go back with the transaction: after a rollback, call `release`. A refusal counts
    nowhere. Raise `ModelNotInTier`, `RequestsExceeded`, `TokensExceeded`, `ConcurrencyExceeded`, `ModelQuotaExceeded`.
    """
    if not user.tier.allows_model(wish.model):
        raise refusals.model_not_in_tier(wish.model, user.tier.name)
    rules = rules_for(user, wish.model)
    counts, is_in_redis = _counted(rules, wish)
    if counts.refused_by is not RefusedBy.NOTHING:
        raise refusals.no_room(rules, wish, counts, _today(rules))
    try:
        today = budgets.reserve(rules, wish)
        if today is None:
            raise _no_tokens_today(rules, wish, counts)
        if not is_in_redis:
            ledger.keep(rules, wish)
    except BaseException:
        if is_in_redis:
            _release_in_redis(user.pk, wish.generation_id)
        raise
    return allowance_of(rules, counts, today)


def release(user_id: UUID, generation_id: UUID) -> None:
    """Give back what was reserved in a transaction that was rolled back."""
    _release_in_redis(user_id, generation_id)


def settled(user_id: UUID, generation_id: UUID, *, tokens_used: int) -> None:
    """Free the place of a generation whose end is committed, and give back what it did not use.

    Of one that used nothing, not even the request counts. Should this be lost, nothing lasting is.
    """
    try:
        windows.settle(user_id, generation_id, tokens_used=tokens_used)
    except REDIS_UNREACHABLE as error:
        _warn(user_id, error)


async def settled_async(client: "redis.asyncio.Redis", user_id: UUID, generation_id: UUID, *, tokens_used: int) -> None:
    """Do the same from async code."""
    try:
        await windows.settle_async(client, user_id, generation_id, tokens_used=tokens_used)
    except REDIS_UNREACHABLE as error:
        _warn(user_id, error)


def peek(user: User, model: str | None = None) -> Allowance:
    """Return where the user stands with a model, or with those that have no limits of their own; count nothing."""
    rules = rules_for(user, model or SHARED_POOL)
    return allowance_of(rules, _looked([rules])[0], _today(rules))


def limits_of(user: User) -> list[Limit]:
    """Return every limit of the user's tier, and where the user stands with it."""
    pools = rules_of_all_pools(user)
    counts, today = _looked(pools), budgets.today_of(user.pk)
    shared, *own = [limits_of_pool(rules, counted, today) for rules, counted in zip(pools, counts, strict=True)]
    return [*shared, *limits_over_all(pools[0], counts[0]), *(limit for limits in own for limit in limits)]


def _counted(rules: Rules, wish: Wish) -> tuple[Counts, bool]:
    """Count a wish, or say what refuses it; and whether it was Redis that counted."""
    try:
        counts = _counted_in_redis(rules, wish)
        if counts.refused_by is RefusedBy.PLACES and _vacated(rules.user_id, counts):
            counts = _counted_in_redis(rules, wish)
    except REDIS_UNREACHABLE as error:
        _warn(rules.user_id, error)
        return _with_it(ledger.check(rules, wish)), False
    return counts, True


def _counted_in_redis(rules: Rules, wish: Wish) -> Counts:
    counts = windows.reserve(rules, wish)
    if counts is None:
        counts = windows.reserve(rules, wish, ledger.past_of(rules))
        assert counts is not None
    return counts


def _vacated(user_id: UUID, counts: Counts) -> bool:
    """Free the places of those who left without a word; say whether there were any."""
    gone = ledger.gone_of(user_id, dict(counts.holders), unknown_after_ms=_UNKNOWN_AFTER_MS)
    if gone:
        windows.vacate(user_id, gone)
    return bool(gone)


def _with_it(counts: Counts) -> Counts:
    if counts.refused_by is not RefusedBy.NOTHING:
        return counts
    return replace(counts, requests=counts.requests + 1)


def _no_tokens_today(rules: Rules, wish: Wish, counts: Counts) -> AccountsError:
    without_it = replace(counts, requests=max(0, counts.requests - 1))
    return refusals.no_tokens_today(rules, wish, without_it, budgets.today_of(rules.user_id))


def _today(rules: Rules) -> Today | None:
    """Return what the day has taken, where that is limited."""
    return None if rules.tokens_per_day is None else budgets.today_of(rules.user_id)


def _looked(pools: list[Rules]) -> list[Counts]:
    try:
        return _looked_in_redis(pools)
    except REDIS_UNREACHABLE as error:
        _warn(pools[0].user_id, error)
        return ledger.look(pools)


def _looked_in_redis(pools: list[Rules]) -> list[Counts]:
    """Return where a user stands. What Redis does not know it is told: the next look need not ask PostgreSQL."""
    counts = windows.look(pools)
    if counts is None:
        counts = windows.look(pools, ledger.pasts_of(pools))
        assert counts is not None
    return counts


def _release_in_redis(user_id: UUID, generation_id: UUID) -> None:
    try:
        windows.release(user_id, generation_id)
    except REDIS_UNREACHABLE as error:
        _warn(user_id, error)


def _warn(user_id: UUID, error: Exception) -> None:
    log.warning("quota_counts_unreachable", user_id=str(user_id), error=type(error).__name__)
