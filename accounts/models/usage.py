"""What was used, and what is kept for what is under way: the exact ledger."""

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast, Now
from django.utils import timezone

from accounts.models.user import User

SHARED_POOL = ""
"""The pool of all models for which the tier keeps nothing of their own; the others' is named like the model."""


def _cost() -> "models.DecimalField[Decimal, Decimal]":
    # Tokens times a price per million of up to six decimal places: exact, and rounded on invoices only.
    return models.DecimalField(max_digits=24, decimal_places=12, default=Decimal(0), db_default=Decimal(0))


class UsageRecord(models.Model):
    """What one generation used, written once, in the transaction that ends it."""

    generation_id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="usage_records")
    conversation_id = models.UUIDField(null=True)
    model = models.CharField(max_length=100)
    model_version = models.CharField(max_length=255, default="", db_default="")
    day = models.DateField(
        db_default=Cast(Now(), models.DateField()), help_text="The UTC day on whose budget it was reserved."
    )
    tokens_in = models.PositiveIntegerField()
    tokens_cached = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField()
    cost = _cost()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["user", "created_at"], name="usage_by_user_and_time"),
            models.Index(fields=["user", "day"], name="usage_by_user_and_day"),
            models.Index(fields=["created_at"], name="usage_by_time"),
        ]

    def __str__(self) -> str:
        return str(self.generation_id)


class TokenBudget(models.Model):
    """A user's tokens of one UTC day and pool: what ended generations used, what those under way may still use."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    day = models.DateField()
    pool = models.CharField(max_length=100, default=SHARED_POOL, db_default=SHARED_POOL)
    used = models.BigIntegerField(default=0, db_default=0)
    reserved = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "day", "pool"], name="one_budget_per_user_day_and_pool"),
            models.CheckConstraint(condition=Q(used__gte=0, reserved__gte=0), name="budgets_are_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.day} {self.pool}"


class TokenReservation(models.Model):
    """What is kept for one generation under way; whoever deletes the row settles it, and nobody else does."""

    generation_id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    model = models.CharField(max_length=100)
    pool = models.CharField(max_length=100, default=SHARED_POOL)
    day = models.DateField()
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["user", "created_at"], name="token_reservation_by_user")]

    def __str__(self) -> str:
        return str(self.generation_id)


class RequestReservation(models.Model):
    """A request that was counted here because Redis was away; needed no longer than the longest window."""

    request_id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    pool = models.CharField(max_length=100, default=SHARED_POOL, db_default=SHARED_POOL)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["user", "created_at"], name="reservation_by_user_and_time")]

    def __str__(self) -> str:
        return str(self.request_id)


class DailyUsage(models.Model):
    """The roll-up of the ledger by user, UTC day and model. Made anew at will from the records."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="daily_usage")
    day = models.DateField()
    model = models.CharField(max_length=100)
    answers = models.PositiveIntegerField()
    tokens_in = models.PositiveBigIntegerField()
    tokens_cached = models.PositiveBigIntegerField()
    tokens_out = models.PositiveBigIntegerField()
    cost = _cost()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "day", "model"], name="one_row_per_user_day_and_model")]
        indexes = [models.Index(fields=["day"], name="daily_usage_by_day")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.day} {self.model}"
