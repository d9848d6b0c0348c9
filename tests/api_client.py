"""A program that uses the API, as a customer would write it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    type: str
    id: int
    data: dict[str, Any]


def parse_events(raw: bytes) -> list[Event]:
    """Read whole frames; comments are left out."""
    events = []
    for frame in raw.split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if line and not line.startswith(b":"))
        if fields:
            events.append(Event(fields[b"event"].decode(), int(fields[b"id"]), json.loads(fields[b"data"])))
    return events


def text_of(events: list[Event]) -> str:
    return "".join(event.data["text"] for event in events if event.type == "token")


class ApiClient:
    """Calls one site with one key."""

    def __init__(self, session: aiohttp.ClientSession, url: str, secret: str) -> None:
        self.session = session
        self.url = url
        self.headers = {"Authorization": f"Bearer {secret}"}

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and JSON (`None` for an empty answer)."""
        async with self.session.request(
            method, self.url + path, json=body, headers={**self.headers, **headers}
        ) as response:
            raw = await response.read()
            return response.status, json.loads(raw) if raw else None

    async def conversation(self, **fields: Any) -> str:
        status, made = await self.call("POST", "/v1/conversations", fields)
        assert status == 201, made
        return made["conversation_id"]

    @asynccontextmanager
    async def sending(self, conversation_id: str, content: str, **fields: Any) -> AsyncIterator["EventStream"]:
        """Send a message and follow its answer; leaving the block closes the connection."""
        headers = {**self.headers, **fields.pop("headers", {})}
        body = {"content": content, **fields}
        path = f"{self.url}/v1/conversations/{conversation_id}/messages"
        async with self.session.post(path, json=body, headers=headers) as response:
            yield EventStream(response)

    async def send(self, conversation_id: str, content: str, **fields: Any) -> list[Event]:
        """Send a message and return all events of its answer."""
        async with self.sending(conversation_id, content, **fields) as stream:
            return await stream.rest()

    @asynccontextmanager
    async def following(self, generation_id: str, after: int | None = None) -> AsyncIterator["EventStream"]:
        headers = dict(self.headers)
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        async with self.session.get(f"{self.url}/v1/generations/{generation_id}/stream", headers=headers) as response:
            yield EventStream(response)

    async def follow(self, generation_id: str, after: int | None = None) -> list[Event]:
        async with self.following(generation_id, after) as stream:
            return await stream.rest()


class EventStream:
    """The events of one response, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._buffer = b""

    async def next(self) -> Event:
        """Return the next event; raise `EOFError` where the stream has ended."""
        while True:
            frame, separator, rest = self._buffer.partition(b"\n\n")
            if separator:
                self._buffer = rest
                if events := parse_events(frame + b"\n\n"):
                    return events[0]
                continue
            chunk = await self.response.content.readany()
            if not chunk:
                raise EOFError
            self._buffer += chunk

    async def until(self, kind: str, count: int = 1) -> list[Event]:
        """Return events up to the `count`th of a kind."""
        events: list[Event] = []
        while sum(event.type == kind for event in events) < count:
            events.append(await self.next())
        return events

    async def rest(self) -> list[Event]:
        events = []
        while True:
            try:
                events.append(await self.next())
            except EOFError:
                return events
