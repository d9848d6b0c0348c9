"""What this app does when accounts tell it something, or a conversation is deleted, by whomever."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from accounts.models import User
from accounts.signals import credentials_revoked
from conversations.broadcasts import tell_credentials_revoked
from conversations.models import Conversation
from conversations.services import context_cache, generations


@receiver(credentials_revoked)
def end_what_is_open(sender: Any, *, user_id: UUID, credential: str | None, **_kwargs: Any) -> None:
    """Have every stream and socket end that was opened with what is no longer good.

    Of a suspended account nothing is answered any more, neither what is being written nor what waits.
    """
    tell_credentials_revoked(user_id)
    if credential is None and User.objects.filter(pk=user_id, is_active=False).exists():
        generations.stop_all_of(user_id)


@receiver(post_delete, sender=Conversation)
def forget_context(sender: Any, *, instance: Conversation, **_kwargs: Any) -> None:
    """Have what is kept of a conversation's text in Redis go with it, also when its owner is deleted."""
    conversation_id = instance.pk
    transaction.on_commit(lambda: context_cache.forget(conversation_id), robust=True)
