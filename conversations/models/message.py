"""One message of a conversation's tree. History is append-only: a changed message is a sibling."""

from django.db import models
from django.utils import timezone

from conversations.models.conversation import Conversation
from foundation.ids import new_id


class Message(models.Model):
    """What the user said, or an answer. An answer's content grows until its status is terminal, then never changes."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETE = "complete"
        CANCELLED = "cancelled"
        BLOCKED = "blocked"
        FAILED = "failed"

    UNDER_WAY = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    role = models.CharField(max_length=16, choices=Role)
    content = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.COMPLETE)
    finish_reason = models.CharField(max_length=16, blank=True)
    model = models.CharField(max_length=100, blank=True)
    tokens_in = models.PositiveIntegerField(null=True, blank=True)
    tokens_cached = models.PositiveIntegerField(null=True, blank=True)
    tokens_out = models.PositiveIntegerField(null=True, blank=True)
    token_counts = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="How many tokens the content has, by tokenizer."
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["conversation", "id"], name="message_by_conversation")]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_under_way(self) -> bool:
        return self.status in self.UNDER_WAY
