"""Counting requests alone, for callers that keep no tokens."""

from collections.abc import Callable, Iterable
from uuid import UUID

import structlog
from django.db import transaction

from accounts.models import Tier
from accounts.quotas import ledger, refusals, windows
from accounts.quotas.allowances import RequestAllowance, requests_of
from accounts.quotas.counts import RefusedBy, Wish
from accounts.quotas.rules import Rules
from foundation.ids import new_id
from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)

RequestsUnderWay = Callable[[UUID], Iterable[UUID]]


def no_requests(user_id: UUID) -> Iterable[UUID]:
    """Know of no request under way."""
    return ()


def reserve_request(
    user_id: UUID,
    tier: Tier,
    *,
    request_id: UUID | None = None,
    requests_under_way: RequestsUnderWay = no_requests,
) -> RequestAllowance:
    """Count one request against the tier's limit, or raise `RequestsExceeded`: exact, however many come at once."""
    wish = Wish(request_id or new_id(), "", 0)
    rules = Rules(user_id, "", tier.requests_per_window, tier.window_seconds, None, None, None, frozenset())
    try:
        counts = windows.reserve(rules, wish)
        if counts is None:
            counts = windows.reserve(rules, wish, ledger.past_of(rules, requests_under_way(user_id)))
            assert counts is not None
    except REDIS_UNREACHABLE as error:
        log.warning("quota_counts_unreachable", user_id=str(user_id), error=type(error).__name__)
        with transaction.atomic():
            counts = ledger.check(rules, wish, requests_under_way(user_id))
            if counts.refused_by is RefusedBy.NOTHING:
                ledger.keep(rules, wish)
    if counts.refused_by is not RefusedBy.NOTHING:
        raise refusals.no_room(rules, wish, counts)
    return requests_of(rules, counts, wish.generation_id)


def release_request(user_id: UUID, allowance: RequestAllowance) -> None:
    """Give a reserved request back: nothing came of it, or it repeats one that was counted."""
    if allowance.request_id is None:
        return
    try:
        windows.release(user_id, allowance.request_id)
    except REDIS_UNREACHABLE as error:
        log.warning("quota_counts_unreachable", user_id=str(user_id), error=type(error).__name__)
    # Last: that nothing came of the request may be because the database is away.
    ledger.release(allowance.request_id)
