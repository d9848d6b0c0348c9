"""The same counts as PostgreSQL knows them, for when Redis is away or has forgotten."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import DurationField, Exists, ExpressionWrapper, F, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from accounts.models import RequestReservation, TokenReservation, UsageRecord, User
from accounts.quotas.counts import Counts, Past, RefusedBy, Wish
from accounts.quotas.rules import Rules

_MINUTE_MS = 60_000
_PAID_NOTHING = Q(tokens_in=0, tokens_out=0)


def past_of(rules: Rules) -> Past:
    """Return what is known of a user; requests are those of the pool."""
    return pasts_of([rules])[0]


def pasts_of(pools: Sequence[Rules]) -> list[Past]:
    """Return the same for several pools of one user."""
    user_id = pools[0].user_id
    reserved = list(_aged(TokenReservation.objects.filter(user_id=user_id)))
    minute = _minute(user_id, reserved)
    under_way = [(each.pk, each.tokens, each.pool, milliseconds(each.age)) for each in reserved]
    return [Past(_requests(rules, reserved), minute, under_way) for rules in pools]


def check(rules: Rules, wish: Wish) -> Counts:
    """Say whether there is room for a wish. Until the commit, no other of the user's is let in beside it."""
    _wait_for_turn(rules.user_id)
    past = past_of(rules)
    counts = _counts(rules, past, wish.tokens)
    is_counted = wish.generation_id in past.requests
    return replace(counts, refused_by=_refused_by(rules, wish, counts, is_counted=is_counted))


def keep(rules: Rules, wish: Wish) -> None:
    """Note a request that Redis was not there to count."""
    RequestReservation.objects.get_or_create(
        request_id=wish.generation_id, defaults={"user_id": rules.user_id, "pool": rules.pool}
    )


def look(pools: Sequence[Rules]) -> list[Counts]:
    """Return where a user stands in some pools, counting nothing."""
    return [_counts(rules, past, 0) for rules, past in zip(pools, pasts_of(pools), strict=True)]


def gone_of(user_id: UUID, holders: dict[UUID, int], *, unknown_after_ms: int) -> list[UUID]:
    """Return those who hold a place and are at their end.

    Whoever is in neither table may be about to be written: it is gone only when it has held its place for long.
    """
    under_way = set(TokenReservation.objects.filter(user_id=user_id).values_list("pk", flat=True))
    ended = set(UsageRecord.objects.filter(pk__in=holders.keys() - under_way).values_list("pk", flat=True))
    return [
        each
        for each, held_ms in holders.items()
        if each in ended or (each not in under_way and held_ms >= unknown_after_ms)
    ]


def uncounted() -> QuerySet[RequestReservation]:
    """Return the requests that Redis was not there to count, but those of which nothing came."""
    return RequestReservation.objects.exclude(
        Exists(UsageRecord.objects.filter(_PAID_NOTHING, pk=OuterRef("request_id")))
    )


def _wait_for_turn(user_id: UUID) -> None:
    # Not the key: rows that refer to the user can still be written meanwhile.
    list(User.objects.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))


def _requests(rules: Rules, reserved: Iterable[Any]) -> dict[UUID, int]:
    of_pool = Q() if rules.is_shared else Q(model=rules.pool)
    records = UsageRecord.objects.filter(of_pool, user_id=rules.user_id).exclude(_PAID_NOTHING)
    counted = uncounted().filter(user_id=rules.user_id, pool=rules.pool)
    # No instances: there may be tens of thousands, and this is what every message waits for while Redis is away.
    ages = {
        request_id: milliseconds(age)
        for rows in (records.exclude(model__in=rules.other_pools), counted)
        for request_id, age in _aged(rows, rules.window_ms).values_list("pk", "age")[: rules.requests]
    }
    for each in reserved:
        if each.pool == rules.pool and milliseconds(each.age) < rules.window_ms:
            ages.setdefault(each.pk, milliseconds(each.age))
    return ages


def _minute(user_id: UUID, reserved: Iterable[Any]) -> list[tuple[UUID, int, int]]:
    records = UsageRecord.objects.filter(user_id=user_id).exclude(_PAID_NOTHING)
    used = _aged(records, _MINUTE_MS).values_list("pk", F("tokens_in") + F("tokens_out"), "age")
    return [(generation_id, tokens, milliseconds(age)) for generation_id, tokens, age in used] + [
        (each.pk, each.tokens, milliseconds(each.age)) for each in reserved if milliseconds(each.age) < _MINUTE_MS
    ]


def _counts(rules: Rules, past: Past, wanted_tokens: int) -> Counts:
    oldest_first = sorted(past.requests.values(), reverse=True)
    requests_reset_ms = 0
    if oldest_first:
        first_to_leave = oldest_first[max(0, len(oldest_first) - max(1, rules.requests))]
        requests_reset_ms = rules.window_ms - first_to_leave
    return Counts(
        requests=len(oldest_first),
        requests_reset_ms=requests_reset_ms,
        minute_tokens=sum(tokens for _, tokens, _ in past.minute),
        minute_resets_ms=_minute_resets_ms(past, rules.tokens_per_minute, wanted_tokens),
        under_way=len(past.under_way),
    )


def _minute_resets_ms(past: Past, limit: int | None, wanted: int) -> int:
    left = sum(tokens for _, tokens, _ in past.minute)
    for _, tokens, age_ms in sorted(past.minute, key=lambda each: -each[2]):
        left -= tokens
        if left == 0 or limit is None or left + wanted <= limit:
            return _MINUTE_MS - age_ms
    return 0


def _refused_by(rules: Rules, wish: Wish, counts: Counts, *, is_counted: bool) -> RefusedBy:
    if is_counted:
        return RefusedBy.NOTHING
    if counts.requests >= rules.requests:
        return RefusedBy.REQUESTS
    per_minute, most = rules.tokens_per_minute, rules.concurrent_generations
    if per_minute is not None and counts.minute_tokens and counts.minute_tokens + wish.tokens > per_minute:
        return RefusedBy.MINUTE
    return RefusedBy.PLACES if most is not None and counts.under_way >= most else RefusedBy.NOTHING


def _aged[Row: Model](rows: QuerySet[Row], within_ms: int | None = None) -> QuerySet[Any]:
    """Return the rows with their `age`, the latest first."""
    # By the database's clock alone: those of the web machines may differ.
    aged = rows.annotate(age=ExpressionWrapper(Now() - F("created_at"), output_field=DurationField()))
    if within_ms is not None:
        aged = aged.filter(created_at__gt=Now() - timedelta(milliseconds=within_ms))
    return aged.order_by("-created_at")


def milliseconds(age: timedelta) -> int:
    """Return an age; of what a clock puts into the future, none."""
    return max(0, age // timedelta(milliseconds=1))
