"""Taking along what one has, and bringing it in."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from foundation.ids import new_id


class TransferStatus(models.TextChoices):
    """How far an export or an import has come."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Export(models.Model):
    """All that a user has, as one zip in the site's private files; deleted when it expires."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="exports")
    status = models.CharField(max_length=16, choices=TransferStatus, default=TransferStatus.QUEUED)
    file = models.CharField(max_length=255, blank=True, default="")
    byte_count = models.PositiveBigIntegerField(null=True)
    error_message = models.TextField(blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(status__in=["queued", "running"]), name="one_export_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return str(self.id)


class Import(models.Model):
    """A file of conversations that is read in. `report` says what came of each part of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports")
    status = models.CharField(max_length=16, choices=TransferStatus, default=TransferStatus.QUEUED)
    file = models.CharField(max_length=255, blank=True, default="")
    digest = models.BinaryField(max_length=32)
    progress = models.FloatField(default=0)
    report = models.JSONField(default=dict)
    attempts = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return str(self.id)


class ImportedConversation(models.Model):
    """Where a conversation came from: the same one is not brought in twice."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.OneToOneField(
        "conversations.Conversation", on_delete=models.CASCADE, primary_key=True, related_name="origin"
    )
    source = models.CharField(max_length=32)
    source_id = models.CharField(max_length=255)
    brought_by = models.ForeignKey(Import, on_delete=models.SET_NULL, null=True, related_name="brought")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "source", "source_id"], name="a_conversation_is_imported_once")
        ]

    def __str__(self) -> str:
        return f"{self.source}:{self.source_id}"
