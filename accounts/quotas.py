"""Who may send another message now: the tier's limits, reserved before anything is written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.utils import timezone

from accounts import request_ledger, request_window
from accounts.exceptions import RequestsExceeded
from accounts.models import Tier
from accounts.request_window import Window, WindowState
from foundation.ids import new_id
from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)

RequestsUnderWay = Callable[[UUID], Iterable[UUID]]
"""Given a user's id, the ids of those requests that have been accepted and are in no usage record yet."""


def no_requests(user_id: UUID) -> Iterable[UUID]:
    """Know of no request under way."""
    return ()


@dataclass(frozen=True, slots=True)
class RequestAllowance:
    """Where a user stands with the request limit. `resets_at` is when the oldest counted request leaves the window."""

    limit: int
    used: int
    window_seconds: int
    resets_at: datetime
    resets_in_seconds: float
    request_id: UUID | None = None

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    def as_shown(self) -> dict[str, Any]:
        """Return what `/v1/limits` tells of it."""
        shown = ("limit", "used", "remaining", "window_seconds", "resets_at")
        return {name: getattr(self, name) for name in shown}


def reserve_request(
    user_id: UUID,
    tier: Tier,
    *,
    request_id: UUID | None = None,
    requests_under_way: RequestsUnderWay = no_requests,
) -> RequestAllowance:
    """Count one request against the tier's limit, or raise `RequestsExceeded`: exact, however many come at once.

    `request_id` is the id of the generation that it will make: counts are rebuilt from the usage records by it, and the
    same id is never counted twice. `requests_under_way` is asked only then, when Redis has forgotten or is away.
    """
    request_id = request_id or new_id()
    window = _window(user_id, tier)
    try:
        state = request_window.reserve(window, request_id)
        if state is None:
            past = request_ledger.requests_within(window, requests_under_way(user_id))
            state = request_window.fill_and_reserve(window, request_id, past)
    except REDIS_UNREACHABLE as error:
        log.warning("request_window_unreachable", user_id=str(user_id), error=type(error).__name__)
        state = request_ledger.reserve(window, request_id, requests_under_way(user_id))
    allowance = _allowance(window, state, request_id)
    if not state.admitted:
        raise _requests_exceeded(allowance)
    return allowance


def release_request(user_id: UUID, allowance: RequestAllowance) -> None:
    """Give a reserved request back: nothing came of it, or it repeats one that was counted."""
    if allowance.request_id is None:
        return
    try:
        request_window.release(user_id, allowance.request_id)
    except REDIS_UNREACHABLE as error:
        log.warning("request_window_unreachable", user_id=str(user_id), error=type(error).__name__)
    # Last: that nothing came of the request may be because the database is away.
    request_ledger.release(allowance.request_id)


def peek(user_id: UUID, tier: Tier) -> RequestAllowance:
    """Return where the user stands, counting nothing."""
    window = _window(user_id, tier)
    try:
        state = request_window.peek(window)
    except REDIS_UNREACHABLE:
        state = None
    return _allowance(window, state or request_ledger.peek(window), None)


def rate_limit_headers(allowance: RequestAllowance) -> dict[str, str]:
    """Return the headers that OpenAI's clients read."""
    return {
        "x-ratelimit-limit-requests": str(allowance.limit),
        "x-ratelimit-remaining-requests": str(allowance.remaining),
        "x-ratelimit-reset-requests": _duration(allowance.resets_in_seconds),
    }


def _window(user_id: UUID, tier: Tier) -> Window:
    return Window(user_id=user_id, limit=tier.requests_per_window, seconds=tier.window_seconds)


def _allowance(window: Window, state: WindowState, request_id: UUID | None) -> RequestAllowance:
    return RequestAllowance(
        limit=window.limit,
        used=state.used,
        window_seconds=window.seconds,
        resets_at=timezone.now() + timedelta(milliseconds=state.resets_in_ms),
        resets_in_seconds=state.resets_in_ms / 1000,
        request_id=request_id,
    )


def _requests_exceeded(allowance: RequestAllowance) -> RequestsExceeded:
    resets_at = allowance.resets_at.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    return RequestsExceeded(
        f"You have sent {allowance.limit} messages within {_duration(allowance.window_seconds)}, as many as your tier"
        f" allows. The next can be sent at {resets_at}.",
        details={"limit": allowance.limit, "remaining": allowance.remaining, "resets_at": resets_at},
        retry_after_seconds=allowance.resets_in_seconds,
        headers=rate_limit_headers(allowance),
    )


def _duration(seconds: float) -> str:
    """Return a duration as OpenAI's headers write it: `2h59m8s`, `6m0s`, `0s`."""
    minutes, whole_seconds = divmod(-int(-seconds // 1), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{whole_seconds}s"
    return f"{minutes}m{whole_seconds}s" if minutes else f"{whole_seconds}s"
