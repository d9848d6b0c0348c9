"""The sentences of refusals: which limit, what is left of it, and when to come again."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.exceptions import (
    AccountsError,
    ConcurrencyExceeded,
    ModelNotInTier,
    ModelQuotaExceeded,
    RequestsExceeded,
    TokensExceeded,
)
from accounts.quotas.allowances import (
    Allowance,
    TokenAllowance,
    allowance_of,
    length,
    rate_limit_headers,
    requests_of,
    tokens_of,
)
from accounts.quotas.budgets import Today
from accounts.quotas.counts import Counts, RefusedBy, Wish
from accounts.quotas.rules import Rules

_PLACE_SECONDS = 5.0
"""When to come again where it is an answer's end that makes room: nobody knows when that is."""


def model_not_in_tier(model: str, tier: str) -> ModelNotInTier:
    """Refuse a model that the tier does not offer."""
    return ModelNotInTier(f"The model {model} is not part of your tier, {tier}; choose another.", param="model")


def no_room(rules: Rules, wish: Wish, counts: Counts, today: Today | None) -> AccountsError:
    """Refuse a wish that one of the counts has no room for; `today` is for the headers."""
    match counts.refused_by:
        case RefusedBy.MINUTE:
            return _minute_exceeded(rules, wish, counts)
        case RefusedBy.PLACES:
            return _concurrency_exceeded(rules, counts, today)
    return _requests_exceeded(rules, counts, today)


def no_tokens_today(rules: Rules, wish: Wish, counts: Counts, today: Today) -> AccountsError:
    """Refuse a wish that the day's tokens do not suffice for."""
    tokens = tokens_of(rules, today)
    assert tokens is not None
    whose = "Your tier" if rules.is_shared else f"For the model {rules.pool} your tier"
    refusal = TokensExceeded if rules.is_shared else ModelQuotaExceeded
    return refusal(
        f"{whose} allows {tokens.limit:,} tokens a day, of which {tokens.remaining:,} are left; this answer may need"
        f" {wish.tokens:,}. Ask for a shorter one, or come again at {_written(today.resets_at)}.",
        details=_details("tokens_per_day", tokens.limit, tokens.used, today.resets_at, rules) | {"needed": wish.tokens},
        retry_after_seconds=today.resets_in_seconds,
        headers=rate_limit_headers(Allowance(requests_of(rules, counts), tokens)),
    )


def _requests_exceeded(rules: Rules, counts: Counts, today: Today | None) -> AccountsError:
    allowance = allowance_of(rules, counts, today)
    requests = allowance.requests
    refusal = RequestsExceeded if rules.is_shared else ModelQuotaExceeded
    whom = "" if rules.is_shared else f" to the model {rules.pool}"
    messages = "1 message" if requests.limit == 1 else f"{requests.limit:,} messages"
    return refusal(
        f"You have sent {messages}{whom} within {length(requests.window_seconds)}, as many as your"
        f" tier allows. The next can be sent at {_written(requests.resets_at)}.",
        details=_details("requests", requests.limit, requests.used, requests.resets_at, rules),
        retry_after_seconds=requests.resets_in_seconds,
        headers=rate_limit_headers(allowance),
    )


def _minute_exceeded(rules: Rules, wish: Wish, counts: Counts) -> AccountsError:
    limit, seconds = rules.tokens_per_minute, counts.minute_resets_ms / 1000
    assert limit is not None
    resets_at = timezone.now() + timedelta(seconds=seconds)
    minute = TokenAllowance(limit, counts.minute_tokens, resets_at, seconds)
    return TokensExceeded(
        f"Your tier allows {limit:,} tokens a minute, of which {minute.remaining:,} are left; this answer may need"
        f" {wish.tokens:,}. Come again at {_written(resets_at)}.",
        details=_details("tokens_per_minute", limit, minute.used, resets_at) | {"needed": wish.tokens},
        retry_after_seconds=seconds,
        headers=rate_limit_headers(Allowance(requests_of(rules, counts), minute)),
    )


def _concurrency_exceeded(rules: Rules, counts: Counts, today: Today | None) -> AccountsError:
    limit = rules.concurrent_generations
    assert limit is not None
    answers = "1 answer is" if limit == 1 else f"{limit:,} answers are"
    return ConcurrencyExceeded(
        f"{answers} being written for you, as many at once as your tier allows. Wait for an end, or stop one.",
        details=_details("concurrent_generations", limit, counts.under_way, None),
        retry_after_seconds=_PLACE_SECONDS,
        headers=rate_limit_headers(allowance_of(rules, counts, today)),
    )


def _details(
    name: str, limit: int, used: int, resets_at: datetime | None, rules: Rules | None = None
) -> dict[str, Any]:
    details = {
        "name": name,
        "limit": limit,
        "used": used,
        "remaining": max(0, limit - used),
        "resets_at": None if resets_at is None else _written(resets_at),
    }
    return details if rules is None or rules.is_shared else details | {"model": rules.pool}


def _written(moment: datetime) -> str:
    # The whole second after: nobody is to come too early.
    return (moment + timedelta(seconds=1, microseconds=-1)).replace(microsecond=0).isoformat().replace("+00:00", "Z")
