"""The browser tab's one WebSocket, `/v1/live`: the tokens of the generations it follows, and what changes elsewhere."""

import asyncio
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import orjson
import structlog
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http.cookie import parse_cookie
from django.http.request import validate_host

from accounts import quotas
from accounts.callers import Caller, caller_from_bearer, caller_from_session_key
from accounts.exceptions import AccountsError
from conversations.broadcasts import group_of
from conversations.streaming.follow import KeepAlive, Limits, follow
from conversations.streaming.hub import current_hub
from conversations.streaming.openings import Opening
from conversations.streaming.snapshot import Snapshot, snapshot_for
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.errors import DomainError
from foundation.redis import REDIS_UNREACHABLE
from inference.positions import Position
from inference.token_stream import StreamedEvent

log = structlog.get_logger(__name__)

NOT_AUTHENTICATED = 4401
WRONG_ORIGIN = 4403
_TRY_AGAIN_LATER = 1013
_MOST_FOLLOWED = 64
_MOST_MESSAGE_CHARACTERS = 2000
_BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    close_code: int
    reason: str | None = None


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """One socket. It authenticates when it opens, and closes when what it was opened with is no longer good."""

    caller: Caller | None = None

    async def connect(self) -> None:
        self._following: dict[UUID, asyncio.Task[None]] = {}
        self._open = ExitStack()
        protocols = self.scope["subprotocols"]
        await self.accept(_BEARER if protocols[:1] == [_BEARER] else None)
        try:
            self.caller = await self._authenticate()
            self._watch_credential(self.caller)
            if "read" in self.caller.scopes:  # announcements tell what there is, and what happens to it
                await self.channel_layer.group_add(group_of(self.caller.user.pk), self.channel_name)
        except _Refused as refused:
            await self.close(refused.close_code, refused.reason)
        except (*DATABASE_UNREACHABLE, *REDIS_UNREACHABLE):
            await self.close(_TRY_AGAIN_LATER)

    def _watch_credential(self, caller: Caller) -> None:
        opening = self._open.enter_context(current_hub().openings.opened_by(caller))
        opening.call_at_end(lambda: self._close_refused(opening))

    def _close_refused(self, opening: Opening) -> None:
        reason = opening.refusal and opening.refusal.code
        self._closing = asyncio.create_task(self.close(NOT_AUTHENTICATED, reason), name="socket closes")

    async def disconnect(self, code: int) -> None:
        self._open.close()
        tasks = list(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.caller is None:
            return
        try:
            await self.channel_layer.group_discard(group_of(self.caller.user.pk), self.channel_name)
        except REDIS_UNREACHABLE as error:
            log.warning("socket_not_discarded", error=type(error).__name__)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.caller is None:
            return
        try:
            kind, generation_id, after = _read(text_data)
        except ValueError as error:
            await self._send({"type": "error", "code": "invalid_request", "message": str(error), "retryable": False})
            return
        if task := self._following.pop(generation_id, None):
            task.cancel()
        if kind == "follow":
            await self._begin(generation_id, after)

    async def _begin(self, generation_id: UUID, after: Position) -> None:
        if len(self._following) >= _MOST_FOLLOWED:
            await self._refuse(
                generation_id, "invalid_request", f"A socket follows {_MOST_FOLLOWED} generations at most."
            )
            return
        task = asyncio.create_task(self._follow(generation_id, after), name=f"socket follows {generation_id}")
        self._following[generation_id] = task
        task.add_done_callback(lambda task: self._ended(generation_id, task))

    def _ended(self, generation_id: UUID, task: "asyncio.Task[None]") -> None:
        if self._following.get(generation_id) is task:
            del self._following[generation_id]
        if not task.cancelled() and (error := task.exception()):
            log.error("socket_follow_failed", generation_id=str(generation_id), exc_info=error)

    async def _follow(self, generation_id: UUID, after: Position) -> None:
        assert self.caller is not None
        try:
            snapshot, limits = await in_database(_snapshot_and_limits, self.caller, generation_id)
        except DomainError as error:
            await self._refuse(generation_id, error.code, error.message)
            return
        except DATABASE_UNREACHABLE:
            await self._refuse(
                generation_id, "overloaded", "The database cannot be reached; try again.", retryable=True
            )
            return
        async with aclosing(follow(snapshot, after=after, limits=limits)) as events:
            async for event in events:
                if not isinstance(event, KeepAlive):
                    try:
                        await self.send(text_data=_with_ids(generation_id, event))
                    except OSError:
                        return  # the socket is gone; `disconnect` is on its way

    async def _refuse(self, generation_id: UUID, code: str, message: str, *, retryable: bool = False) -> None:
        await self._send(
            {
                "type": "error",
                "generation_id": str(generation_id),
                "code": code,
                "message": message,
                "retryable": retryable,
            }
        )

    async def _send(self, data: dict[str, Any]) -> None:
        await self.send(text_data=orjson.dumps(data).decode())

    async def broadcast(self, message: dict[str, Any]) -> None:
        """Pass on what `conversations.broadcasts` sends to the user's group."""
        await self._send(message["data"])

    async def _authenticate(self) -> Caller:
        """Return who opened the socket: by bearer token, or by session cookie from a page of this site."""
        protocols = self.scope["subprotocols"]
        try:
            if protocols[:1] == [_BEARER]:
                return await in_database(caller_from_bearer, protocols[1] if len(protocols) > 1 else "")
            if not self._is_from_this_site():
                raise _Refused(WRONG_ORIGIN)
            return await in_database(_caller_from_cookie, self._header(b"cookie"))
        except AccountsError as error:
            raise _Refused(NOT_AUTHENTICATED, error.code) from error

    def _is_from_this_site(self) -> bool:
        """A browser lets any site open a socket here and sends our cookie along: only the Origin tells them apart."""
        origin = self._header(b"origin")
        if origin in settings.CSRF_TRUSTED_ORIGINS:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        is_same = parts.netloc == self._header(b"host") and parts.scheme in ("http", "https")
        return is_same and validate_host(parts.hostname or "", settings.ALLOWED_HOSTS)

    def _header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")


def _caller_from_cookie(cookie: str) -> Caller:
    return caller_from_session_key(parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME))


def _snapshot_and_limits(caller: Caller, generation_id: UUID) -> tuple[Snapshot, Limits]:
    caller.require("read")
    snapshot = snapshot_for(caller.user.pk, generation_id)
    return snapshot, Limits.within(quotas.peek(caller.user, snapshot.model))


def _read(text_data: str | None) -> tuple[str, UUID, Position]:
    """Read a client's message; raise `ValueError` with a sentence for it."""
    if text_data is None or len(text_data) > _MOST_MESSAGE_CHARACTERS:
        raise ValueError("Send short JSON text messages.")
    try:
        message = orjson.loads(text_data)
        kind, generation_id, after = message["type"], UUID(message["generation_id"]), message.get("after")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError('Send {"type": "follow" or "unfollow", "generation_id": …, "after": …}.') from error
    if kind not in ("follow", "unfollow"):
        raise ValueError("type must be follow or unfollow.")
    if after is not None and (isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < 2**53):
        raise ValueError("after must be an event id, or null.")
    return kind, generation_id, Position.from_event_id(after or 0)


def _with_ids(generation_id: UUID, event: StreamedEvent) -> str:
    head = b'{"generation_id":"%s","event_id":%d,' % (str(generation_id).encode(), event.position.event_id)
    return (head + event.data[1:]).decode()
