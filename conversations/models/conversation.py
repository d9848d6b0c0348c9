"""A conversation: a tree of messages and the branch that is shown."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone

from foundation.ids import new_id


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Which conversations."""

    def owned_by(self, user_id: UUID) -> "ConversationQuerySet":
        return self.filter(user_id=user_id)

    def outlived(self, now: datetime) -> "ConversationQuerySet":
        """Temporary ones whose time is over."""
        return self.filter(temporary=True, updated_at__lte=now - _temporary_keep_time())


class Conversation(models.Model):
    """What one user and the model said to each other. `active_message` is the last message of the shown branch."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    is_title_chosen = models.BooleanField(default=False, help_text="Whether the user gave the title.")
    model = models.CharField(max_length=100, blank=True, help_text="The model's alias; empty means the site's default.")
    instructions = models.TextField(blank=True)
    active_message = models.ForeignKey(
        "conversations.Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    temporary = models.BooleanField(default=False)
    context_version = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Grows with every write that is not a further message."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["user", "-updated_at", "-id"], name="conversation_by_user_recent"),
            models.Index(fields=["updated_at"], condition=models.Q(temporary=True), name="temporary_conversation"),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def expires_at(self) -> datetime | None:
        """When a temporary conversation is deleted if nothing more is said in it; `None` for any other."""
        return self.updated_at + _temporary_keep_time() if self.temporary else None


def _temporary_keep_time() -> timedelta:
    return timedelta(hours=settings.TEMPORARY_KEEP_HOURS)
