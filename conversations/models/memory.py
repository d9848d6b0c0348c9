"""A fact about a user that outlives the conversation in which it was told."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from conversations.models.conversation import Conversation
from conversations.models.message import Message
from foundation.ids import new_id


class MemoryQuerySet(models.QuerySet["Memory"]):
    """Which memories."""

    def owned_by(self, user_id: UUID) -> "MemoryQuerySet":
        return self.filter(user_id=user_id)

    def proposed(self) -> "MemoryQuerySet":
        """Those that the user has not answered."""
        return self.filter(confirmed_at=None)


class Memory(models.Model):
    """One fact, written deliberately. `confirmed_at` is empty while it is only proposed."""

    class Origin(models.TextChoices):
        ASKED = "asked", "asked for in a conversation"
        WRITTEN = "written", "written by the user"
        PROPOSED = "proposed", "proposed by the model"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memories")
    content = models.TextField()
    origin = models.CharField(max_length=16, choices=Origin)
    enabled = models.BooleanField(default=True)
    conversation = models.ForeignKey(Conversation, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    message = models.ForeignKey(Message, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    reviewed_at = models.DateTimeField(default=timezone.now, help_text="When the user last said that it holds.")
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        constraints = [models.CheckConstraint(condition=~Q(content=""), name="memory_says_something")]
        indexes = [models.Index(fields=["user", "id"], name="memory_by_user")]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_proposed(self) -> bool:
        return self.confirmed_at is None

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def is_in_force(self) -> bool:
        """Whether models are told of it."""
        return self.enabled and not self.is_proposed and not self.is_expired

    @property
    def needs_review(self) -> bool:
        """Whether nobody has confirmed or changed it for so long that it may hold no more."""
        is_old = self.reviewed_at < timezone.now() - timedelta(days=settings.MEMORY_REVIEW_DAYS)
        return is_old and not self.is_proposed and not self.is_expired
