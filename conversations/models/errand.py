"""Text that the product itself asks of a model, in the background: a title, a summary."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from conversations.models.conversation import Conversation
from conversations.models.message import Message
from foundation.ids import new_id


class Errand(models.Model):
    """One request to a model and what came of it. The table is the queue's outbox, as that of generations is.

    There is one title errand per conversation and one summary errand per last covered message, whoever asks how often.
    Once it is settled or has failed for good, prompt and text are emptied, being the user's words; the row stays, so
    that it is not done again. `attempt` fences its workers' writes.
    """

    class Kind(models.TextChoices):
        TITLE = "title"
        SUMMARY = "summary"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WRITTEN = "written"
        SETTLED = "settled"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=16, choices=Kind)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="errands")
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="+", help_text="The answer to name, or the last one covered."
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    model = models.CharField(max_length=100)
    prompt = models.JSONField(default=list, help_text="The messages, as [role, content].")
    details = models.JSONField(default=dict, help_text="What its kind needs to settle it; nobody's words.")
    max_tokens = models.PositiveIntegerField()
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="Attempts that came to nothing; one that gave way to a person is none."
    )
    requests = models.PositiveSmallIntegerField(
        default=1, help_text="How often it was asked for; again only once it had failed."
    )
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    enqueued_at = models.DateTimeField(default=timezone.now, help_text="When it was last offered, or was written.")
    deadline = models.DateTimeField()
    lease_expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation"], condition=Q(kind="title"), name="one_title_errand"),
            models.UniqueConstraint(fields=["message"], condition=Q(kind="summary"), name="one_summary_errand"),
        ]
        indexes = [
            models.Index(
                fields=["enqueued_at"],
                name="errand_under_way",
                condition=Q(status__in=("queued", "running", "written")),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
