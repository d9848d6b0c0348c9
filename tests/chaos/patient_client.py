"""A client as it should be: it repeats what was not acknowledged, and resumes what was."""

import asyncio
import json
import time
from dataclasses import dataclass, field

import aiohttp

from tests.api_client import ApiClient, Event, EventStream

GIVE_UP_SECONDS = 90
FAULTS = (aiohttp.ClientError, ConnectionError, TimeoutError, EOFError)


@dataclass
class Reading:
    """One answer as its reader saw it."""

    events: list[Event] = field(default_factory=list)
    connections: int = 0
    longest_gap_seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        return bool(self.events) and self.events[-1].type == "done"


async def read_answer(client: ApiClient, conversation_id: str, content: str, key: str) -> Reading:
    """Send a message and read its answer to the end, through whatever happens."""
    reading = Reading()
    deadline = time.monotonic() + GIVE_UP_SECONDS
    last = time.monotonic()
    while not reading.is_whole:
        assert time.monotonic() < deadline, f"no end of {conversation_id}: {reading.events[-1:]}"
        try:
            async with _connection(client, conversation_id, content, key, reading) as response:
                if response.status != 200:
                    await asyncio.sleep(0.2)
                    continue
                reading.connections += 1
                stream = EventStream(response)
                while not reading.is_whole:
                    event = await stream.next()
                    reading.longest_gap_seconds = max(reading.longest_gap_seconds, time.monotonic() - last)
                    last = time.monotonic()
                    reading.events.append(event)
        except FAULTS:
            await asyncio.sleep(0.1)
    return reading


def _connection(client: ApiClient, conversation_id: str, content: str, key: str, reading: Reading):
    if not reading.events:
        return client.session.post(
            f"{client.url}/v1/conversations/{conversation_id}/messages",
            data=json.dumps({"content": content}),
            headers={**client.headers, "Idempotency-Key": key, "Content-Type": "application/json"},
        )
    return client.session.get(
        f"{client.url}/v1/generations/{reading.events[0].data['generation_id']}/stream",
        headers={**client.headers, "Last-Event-ID": str(reading.events[-1].id)},
    )
