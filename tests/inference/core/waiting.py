"""Waiting for what must come true, with a deadline."""

import asyncio
import inspect


async def until(predicate, *, seconds: float = 10.0):
    """Return what `predicate` (or the coroutine that it makes) says once that is true; fail after so many seconds."""
    async with asyncio.timeout(seconds):
        while True:
            said = predicate()
            if inspect.isawaitable(said):
                said = await said
            if said:
                return said
            await asyncio.sleep(0.005)
