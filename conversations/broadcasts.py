"""Tells a user's other tabs and devices what has changed. Small hints: who cares fetches anew."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog
from channels.layers import get_channel_layer
from django.conf import settings

from foundation.redis import REDIS_UNREACHABLE, key, shared_client

log = structlog.get_logger(__name__)


def group_of(user_id: UUID) -> str:
    """Return the channel-layer group of all sockets of a user."""
    return f"user.{user_id}"


async def broadcast(user_id: UUID, kind: str, **data: Any) -> None:
    """Send one notification, such as `message_added`, to all of the user's sockets. Never fails: it is only a hint."""
    await _to_sockets(user_id, _broadcast_message(kind, data))


def broadcast_soon(user_id: UUID, kind: str, **data: Any) -> None:
    """Do the same from synchronous code.

    It tells Redis what the channel layer would: to wait for the event loop to do so was two fifths of a sending.
    """
    layer = get_channel_layer()
    channel = f"{settings.CHANNELS_PREFIX}__group__{group_of(user_id)}"
    message = layer.serialize(_broadcast_message(kind, data))
    try:
        shared_client().publish(channel, message)
    except REDIS_UNREACHABLE as error:
        log.warning("broadcast_failed", kind=kind, error=type(error).__name__)


def credentials_channel() -> str:
    """Return the Redis channel on which every web process hears that a credential is no longer good."""
    return key(1, "credentials")


def tell_credentials_revoked(user_id: UUID) -> None:
    """Have every web process look at what it has open at once. Never fails: they look by themselves as well."""
    try:
        shared_client().publish(credentials_channel(), str(user_id))
    except REDIS_UNREACHABLE as error:
        log.warning("revocation_not_told", error=type(error).__name__)


async def _to_sockets(user_id: UUID, message: dict[str, Any]) -> None:
    try:
        await get_channel_layer().group_send(group_of(user_id), message)
    except REDIS_UNREACHABLE as error:
        log.warning("broadcast_failed", kind=message["type"], error=type(error).__name__)


def _broadcast_message(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "broadcast", "data": {"type": kind, **{name: str(value) for name, value in data.items()}}}
