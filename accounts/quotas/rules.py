"""What holds for a user and a model: the tier's limits, or those that the tier keeps for that model alone."""

import time
from dataclasses import dataclass
from uuid import UUID

from accounts.models import SHARED_POOL, ModelLimit, Tier, User

_HOLD_SECONDS = 5.0
"""How long a process goes by what it has read of the models' own limits: they are needed with each message."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of one user in one pool. `None` is no limit."""

    user_id: UUID
    pool: str
    requests: int
    window_seconds: int
    tokens_per_minute: int | None
    tokens_per_day: int | None
    concurrent_generations: int | None
    other_pools: frozenset[str]
    """The models that have limits of their own, but this pool."""

    @property
    def window_ms(self) -> int:
        return self.window_seconds * 1000

    @property
    def is_shared(self) -> bool:
        return self.pool == SHARED_POOL


@dataclass(slots=True)
class _Read:
    limits: dict[str, ModelLimit]
    read_at: float


_read: dict[str, _Read] = {}


def rules_for(user: User, model: str) -> Rules:
    """Return what holds for a user's generation by a model; `""` stands for all models without limits of their own."""
    return _rules(user, own_limits_of(user.tier), model)


def rules_of_all_pools(user: User) -> list[Rules]:
    """Return what holds in each of the user's pools, the shared one first."""
    own = own_limits_of(user.tier)
    return [_rules(user, own, pool) for pool in (SHARED_POOL, *sorted(own))]


def own_limits_of(tier: Tier) -> dict[str, ModelLimit]:
    """Return what a tier keeps for single models, by their names; as it was up to some seconds ago."""
    found = _read.get(tier.pk)
    if found is None or time.monotonic() - found.read_at >= _HOLD_SECONDS:
        limits = {limit.model: limit for limit in ModelLimit.objects.filter(tier=tier)}
        found = _read[tier.pk] = _Read(limits, time.monotonic())
    return found.limits


def forget_own_limits() -> None:
    """Read what tiers keep for single models anew with the next message."""
    _read.clear()


def _rules(user: User, own: dict[str, ModelLimit], model: str) -> Rules:
    limit = own.get(model)
    tier = user.tier
    return Rules(
        user_id=user.pk,
        pool=SHARED_POOL if limit is None else limit.model,
        requests=tier.requests_per_window if limit is None else limit.requests_per_window,
        window_seconds=tier.window_seconds,
        tokens_per_minute=tier.tokens_per_minute,
        tokens_per_day=tier.tokens_per_day if limit is None else limit.tokens_per_day,
        concurrent_generations=tier.concurrent_generations,
        other_pools=frozenset(own) - {model},
    )
