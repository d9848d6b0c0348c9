"""Asking a running site something, from a test that is not async."""

import asyncio

import aiohttp

from tests.api_client import ApiClient, Event


def ask(url: str, secret: str, content: str, **fields) -> list[Event]:
    """Send one message in a new conversation and return the events of its answer."""
    return asyncio.run(_ask(url, secret, content, fields))


async def _ask(url: str, secret: str, content: str, fields: dict) -> list[Event]:
    # The worker may still be starting.
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=150)) as session:
        alice = ApiClient(session, url, secret)
        return await alice.send(await alice.conversation(), content, **fields)
