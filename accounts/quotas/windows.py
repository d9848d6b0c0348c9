"""The counts of each user in Redis: requests of a window, tokens of the last minute, generations under way."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import redis.asyncio

from accounts.quotas import lua
from accounts.quotas.counts import Counts, Past, RefusedBy, Wish
from accounts.quotas.rules import Rules
from foundation.redis import shared_client

_RELEASED = 0


def reserve(rules: Rules, wish: Wish, past: Past | None = None) -> Counts | None:
    """Count a wish where there is room for it everywhere; `None` where Redis does not know the user and `past` is not
    given."""
    answer = lua.run(shared_client(), "reserve", rules.user_id, _asked(rules, wish, past))
    if answer is None:
        return None
    refused_by, used, resets_ms, tokens, minute_ms, under_way, holders = answer
    return Counts(
        requests=used,
        requests_reset_ms=resets_ms,
        minute_tokens=tokens,
        minute_resets_ms=minute_ms,
        under_way=under_way,
        refused_by=RefusedBy(refused_by.decode()),
        holders={UUID(holders[i].decode()): holders[i + 1] for i in range(0, len(holders), 2)},
    )


def look(pools: Sequence[Rules], pasts: Sequence[Past] | None = None) -> list[Counts] | None:
    """Return where a user stands in some pools, counting nothing; `None` where Redis does not know it and `pasts` are
    not given."""
    asked: dict[str, Any] = {
        "pools": [{"pool": each.pool, "requests": each.requests, "window_ms": each.window_ms} for each in pools]
    }
    if pasts is not None:
        asked["past"] = _told(pasts[0]) | {"requests": [_ages(past) for past in pasts]}
    answer = lua.run(shared_client(), "look", pools[0].user_id, asked)
    if answer is None:
        return None
    tokens, minute_ms, under_way, *windows = answer
    return [
        Counts(used, resets_ms, tokens, minute_ms, under_way)
        for used, resets_ms in zip(windows[::2], windows[1::2], strict=True)
    ]


def release(user_id: UUID, generation_id: UUID) -> None:
    """Forget a wish: nothing came of it."""
    settle(user_id, generation_id, tokens_used=_RELEASED)


def settle(user_id: UUID, generation_id: UUID, *, tokens_used: int) -> None:
    """Free a generation's place, and keep of its tokens those that it used; of one that used none, keep nothing."""
    lua.run(shared_client(), "settle", user_id, {"id": generation_id, "tokens": tokens_used})


async def settle_async(client: "redis.asyncio.Redis", user_id: UUID, generation_id: UUID, *, tokens_used: int) -> None:
    """Do the same from async code."""
    await lua.run_async(client, "settle", user_id, {"id": generation_id, "tokens": tokens_used})


def vacate(user_id: UUID, generation_ids: Collection[UUID]) -> None:
    """Free the places of generations that are gone."""
    lua.run(shared_client(), "vacate", user_id, list(generation_ids))


def forget(user_id: UUID, pools: Collection[str]) -> int:
    """Forget all that is counted of a user, in these pools; return how many keys held it."""
    count: int = lua.run(shared_client(), "forget", user_id, list(pools))
    return count


def add(user_id: UUID, pool: str, generation_id: UUID, *, age_ms: int, tokens_under_way: int | None) -> None:
    """Count what was counted elsewhere; `tokens_under_way` are given while it is not at its end."""
    asked: dict[str, Any] = {"id": generation_id, "pool": pool, "age_ms": age_ms}
    if tokens_under_way is not None:
        asked["tokens"] = tokens_under_way
    lua.run(shared_client(), "add", user_id, asked)


def _asked(rules: Rules, wish: Wish, past: Past | None) -> dict[str, Any]:
    # What is not there is left out: Lua takes JSON's null for a value.
    asked: dict[str, Any] = {
        "id": wish.generation_id,
        "pool": rules.pool,
        "requests": rules.requests,
        "window_ms": rules.window_ms,
        "tokens": wish.tokens,
    }
    if rules.tokens_per_minute is not None:
        asked["per_minute"] = rules.tokens_per_minute
    if rules.concurrent_generations is not None:
        asked["concurrent"] = rules.concurrent_generations
    if past is not None:
        asked["past"] = _told(past) | {"requests": _ages(past)}
    return asked


def _told(past: Past) -> dict[str, Any]:
    return {"minute": past.minute, "under_way": past.under_way}


def _ages(past: Past) -> dict[str, int]:
    return {str(request_id): age_ms for request_id, age_ms in past.requests.items()}
