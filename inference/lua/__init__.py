"""The scripts that run inside Redis: the queue, the permits and the door share their keys, so each is one step."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import redis.asyncio
from redis import Redis
from redis.exceptions import NoScriptError

from foundation.redis import key

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class _Script:
    text: str
    sha: str


@cache
def _script(name: str) -> _Script:
    text = "\n".join((_HERE / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))
    return _Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def base_key() -> str:
    """Return what every key of these scripts begins with. The braces keep them all on one node of a cluster."""
    return key(2, "{queue}")


def wake_channel() -> str:
    """Return the channel on which workers hear that there may be something to take."""
    return key(2, "queue", "wake")


def run(client: Redis, name: str, *arguments: str | bytes | float) -> Any:
    """Run a script in one round trip; two where this Redis does not know it yet."""
    script, words = _script(name), (base_key(), wake_channel(), *arguments)
    try:
        return client.evalsha(script.sha, 2, *words)
    except NoScriptError:
        return client.eval(script.text, 2, *words)


async def run_async(client: "redis.asyncio.Redis", name: str, *arguments: str | bytes | float) -> Any:
    """Run a script in one round trip; two where this Redis does not know it yet."""
    script, words = _script(name), (base_key(), wake_channel(), *arguments)
    try:
        return await client.evalsha(script.sha, 2, *words)
    except NoScriptError:
        return await client.eval(script.text, 2, *words)
