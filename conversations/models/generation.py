"""The making of one answer. The table is the queue's outbox: Redis may forget, this does not."""

from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone

from conversations.models.conversation import Conversation
from conversations.models.message import Message


class GenerationQuerySet(models.QuerySet["Generation"]):
    """Which generations."""

    def owned_by(self, user_id: UUID) -> "GenerationQuerySet":
        return self.filter(user_id=user_id)

    def under_way(self) -> "GenerationQuerySet":
        return self.filter(status__in=Message.UNDER_WAY)

    def with_what_they_follow(self) -> "GenerationQuerySet":
        """Their messages loaded, and the messages above those without what these say, which may be long."""
        return self.select_related("message__parent").defer("message__parent__content")


class Generation(models.Model):
    """How an answer came about. Its id is the answer's message id; `attempt` fences every write of its workers.

    `status` is the message's, which however stays `running` while one that had begun waits for another worker; terminal
    states are final. While it runs, `lease_expires_at` says until when its worker is believed alive.
    """

    message = models.OneToOneField(Message, on_delete=models.CASCADE, primary_key=True, related_name="generation")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="generations")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="generations")
    status = models.CharField(max_length=16, choices=Message.Status, default=Message.Status.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=0)
    priority_class = models.CharField(max_length=16)
    model = models.CharField(max_length=100, help_text="The alias that was asked for.")
    model_version = models.CharField(max_length=200, blank=True)
    replica = models.CharField(max_length=200, blank=True)
    options = models.JSONField(default=dict, help_text="max_tokens, temperature, top_p, seed, stop.")
    notices = models.JSONField(
        default=list, db_default=[], help_text="Codes of what the answer does without, under load."
    )
    context = models.JSONField(
        null=True, editable=False, help_text="What the model saw, as `conversations.context.record` has it."
    )
    is_background = models.BooleanField(default=False, help_text="Goes on when nobody watches.")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(default=timezone.now)
    enqueued_at = models.DateTimeField(default=timezone.now)
    deadline = models.DateTimeField(help_text="When a generation that still waits is given up.")
    started_at = models.DateTimeField(null=True, blank=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    finish_reason = models.CharField(max_length=16, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)

    objects = GenerationQuerySet.as_manager()

    class Meta:
        permissions = [("see_context", "Can see, with a reason, what a model saw")]
        indexes = [
            models.Index(
                fields=["status", "message"],
                name="generation_under_way",
                condition=models.Q(status__in=("queued", "running")),
            ),
        ]

    def __str__(self) -> str:
        return str(self.message_id)


class IdempotencyKey(models.Model):
    """One key of one user: makes one generation, and attaches every repetition to it."""

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_digest = models.BinaryField(max_length=32)
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_generation_per_idempotency_key")]

    def __str__(self) -> str:
        return str(self.pk)
