"""The scripts that run inside Redis: each sees all that is counted of one user, and is one step."""

from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import redis.asyncio
from redis import Redis
from redis.commands.core import AsyncScript, Script

from foundation.redis import key

_HERE = Path(__file__).parent


@cache
def _text(name: str) -> str:
    return "\n".join((_HERE / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))


def _base_key(user_id: UUID) -> str:
    """Return what every key of a user's counts begins with. The braces keep them on one node of a cluster."""
    return key(2, "quota", f"{{{user_id}}}")


def run(client: Redis, name: str, user_id: UUID, asked: object) -> Any:
    """Run a script on a user's counts in one round trip; two more where this Redis does not know it yet."""
    return Script(client, _text(name))(keys=[_base_key(user_id)], args=[orjson.dumps(asked)])


async def run_async(client: "redis.asyncio.Redis", name: str, user_id: UUID, asked: object) -> Any:
    """Run a script on a user's counts in one round trip; two more where this Redis does not know it yet."""
    return await AsyncScript(client, _text(name))(keys=[_base_key(user_id)], args=[orjson.dumps(asked)])
