"""Where a user stands with the limits, in the words of the API and of the pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from accounts.quotas.budgets import Today
from accounts.quotas.counts import Counts
from accounts.quotas.rules import Rules


@dataclass(frozen=True, slots=True)
class RequestAllowance:
    """Where a user stands with the request limit. `resets_at` is when the oldest counted request leaves the window."""

    limit: int
    used: int
    window_seconds: int
    resets_at: datetime
    resets_in_seconds: float

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class TokenAllowance:
    """Where a user stands with the tokens of a day; used is also what is kept for answers under way."""

    limit: int
    used: int
    resets_at: datetime
    resets_in_seconds: float

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Where a user stands: with the requests, and with the day's tokens unless the tier leaves them open."""

    requests: RequestAllowance
    tokens: TokenAllowance | None

    @property
    def requests_remaining(self) -> int:
        return self.requests.remaining

    @property
    def tokens_remaining(self) -> int | None:
        return None if self.tokens is None else self.tokens.remaining


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit, of everything or of one model's own. `resets_at` is `None` where it is not time that makes room."""

    name: str
    limit: int
    used: int
    window_seconds: int | None
    resets_at: datetime | None
    model: str | None = None

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


def allowance_of(rules: Rules, counts: Counts, today: Today | None) -> Allowance:
    """Return where a user stands in a pool."""
    return Allowance(requests_of(rules, counts), None if today is None else tokens_of(rules, today))


def requests_of(rules: Rules, counts: Counts) -> RequestAllowance:
    """Return where a user stands with the requests of a pool."""
    return RequestAllowance(
        limit=rules.requests,
        used=counts.requests,
        window_seconds=rules.window_seconds,
        resets_at=_in(counts.requests_reset_ms),
        resets_in_seconds=counts.requests_reset_ms / 1000,
    )


def tokens_of(rules: Rules, today: Today) -> TokenAllowance | None:
    """Return where a user stands with the day's tokens of a pool."""
    if rules.tokens_per_day is None:
        return None
    taken = today.taken.get(rules.pool, 0)
    return TokenAllowance(rules.tokens_per_day, taken, today.resets_at, today.resets_in_seconds)


def limits_over_all(rules: Rules, counts: Counts) -> list[Limit]:
    """Return the limits that hold over all pools together."""
    limits = []
    if rules.tokens_per_minute is not None:
        resets_at = _in(counts.minute_resets_ms)
        limits.append(Limit("tokens_per_minute", rules.tokens_per_minute, counts.minute_tokens, 60, resets_at))
    if rules.concurrent_generations is not None:
        limits.append(Limit("concurrent_generations", rules.concurrent_generations, counts.under_way, None, None))
    return limits


def limits_of_pool(rules: Rules, counts: Counts, today: Today) -> list[Limit]:
    """Return the limits of one pool."""
    model = None if rules.is_shared else rules.pool
    limits = [
        Limit("requests", rules.requests, counts.requests, rules.window_seconds, _in(counts.requests_reset_ms), model)
    ]
    if rules.tokens_per_day is not None:
        taken = today.taken.get(rules.pool, 0)
        limits.append(Limit("tokens_per_day", rules.tokens_per_day, taken, 86400, today.resets_at, model))
    return limits


def rate_limit_headers(allowance: Allowance) -> dict[str, str]:
    """Return the headers that OpenAI's clients read."""
    requests, tokens = allowance.requests, allowance.tokens
    headers = _headers("requests", requests.limit, requests.remaining, requests.resets_in_seconds)
    if tokens is not None:
        headers |= _headers("tokens", tokens.limit, tokens.remaining, tokens.resets_in_seconds)
    return headers


def duration(seconds: float) -> str:
    """Return a duration as OpenAI's headers write it: `2h59m8s`, `6m0s`, `0s`."""
    minutes, whole_seconds = divmod(max(0, -int(-seconds // 1)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{whole_seconds}s"
    return f"{minutes}m{whole_seconds}s" if minutes else f"{whole_seconds}s"


def length(seconds: int) -> str:
    """Return a length of time as people say it, in its largest whole unit: `3 hours`, `one day`."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count, rest = divmod(seconds, size)
        if count and not rest:
            return f"{count} {unit}s" if count > 1 else f"one {unit}"
    return f"{seconds} seconds"


def _headers(what: str, limit: int, remaining: int, resets_in_seconds: float) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{what}": str(limit),
        f"x-ratelimit-remaining-{what}": str(remaining),
        f"x-ratelimit-reset-{what}": duration(resets_in_seconds),
    }


def _in(milliseconds: int) -> datetime:
    return timezone.now() + timedelta(milliseconds=milliseconds)
