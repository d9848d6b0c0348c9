"""The scripts that run inside Redis: the queue, the permits and the door share their keys, so each is one step."""

from functools import cache
from pathlib import Path
from typing import Any

import redis.asyncio
from redis import Redis

from foundation.redis import key

_HERE = Path(__file__).parent


@cache
def _text(name: str) -> str:
    return "\n".join((_HERE / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))


def base_key() -> str:
    """Return what every key of these scripts begins with. The braces keep them all on one node of a cluster."""
    return key(2, "{queue}")


def wake_channel() -> str:
    """Return the channel on which workers hear that there may be something to take."""
    return key(2, "queue", "wake")


def run(client: Redis, name: str, *arguments: str | bytes | float) -> Any:
    """Run a script in one round trip; two where this Redis does not know it yet."""
    return client.register_script(_text(name))(keys=[base_key(), wake_channel()], args=arguments)


async def run_async(client: "redis.asyncio.Redis", name: str, *arguments: str | bytes | float) -> Any:
    """Run a script in one round trip; two where this Redis does not know it yet."""
    return await client.register_script(_text(name))(keys=[base_key(), wake_channel()], args=arguments)
