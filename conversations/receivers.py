"""What this app does when accounts tell it something."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.dispatch import receiver

from accounts.signals import credentials_revoked
from conversations.broadcasts import tell_credentials_revoked


@receiver(credentials_revoked)
def close_sockets(sender: Any, *, user_id: UUID, credential: str | None, **_kwargs: Any) -> None:
    """Have every socket close that was opened with what is no longer good."""
    async_to_sync(tell_credentials_revoked)(user_id, credential)
