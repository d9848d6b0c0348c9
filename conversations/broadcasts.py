"""Tells a user's other tabs and devices what has changed. Small hints: who cares fetches anew."""

from typing import Any
from uuid import UUID

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)


def group_of(user_id: UUID) -> str:
    """Return the channel-layer group of all sockets of a user."""
    return f"user.{user_id}"


async def broadcast(user_id: UUID, kind: str, **data: Any) -> None:
    """Send one notification, such as `message_added`, to all of the user's sockets. Never fails: it is only a hint."""
    shown = {"type": kind, **{name: str(value) for name, value in data.items()}}
    await _to_sockets(user_id, {"type": "broadcast", "data": shown})


def broadcast_soon(user_id: UUID, kind: str, **data: Any) -> None:
    """Do the same from synchronous code, and return when it is sent."""
    async_to_sync(broadcast)(user_id, kind, **data)


async def tell_credentials_revoked(user_id: UUID, credential: str | None) -> None:
    """Tell the user's sockets that a credential, or every one (`None`), is no longer good."""
    await _to_sockets(user_id, {"type": "credentials.revoked", "credential": credential})


async def _to_sockets(user_id: UUID, message: dict[str, Any]) -> None:
    try:
        await get_channel_layer().group_send(group_of(user_id), message)
    except REDIS_UNREACHABLE as error:
        log.warning("broadcast_failed", kind=message["type"], error=type(error).__name__)
