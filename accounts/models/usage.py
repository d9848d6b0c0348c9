"""What was used: the exact ledger."""

from django.db import models
from django.utils import timezone

from accounts.models.user import User


class UsageRecord(models.Model):
    """What one generation used, written once, in the transaction that ends it."""

    generation_id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="usage_records")
    conversation_id = models.UUIDField(null=True)
    model = models.CharField(max_length=100)
    tokens_in = models.PositiveIntegerField()
    tokens_cached = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["user", "created_at"], name="usage_by_user_and_time")]

    def __str__(self) -> str:
        return str(self.generation_id)


class RequestReservation(models.Model):
    """A request that was counted here because Redis was away; needed no longer than the longest window."""

    request_id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["user", "created_at"], name="reservation_by_user_and_time")]

    def __str__(self) -> str:
        return str(self.request_id)
