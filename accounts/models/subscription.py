"""Who is on which plan, and since when."""

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models.tier import Tier
from accounts.models.user import User
from foundation.ids import new_id


class Subscription(models.Model):
    """A user's plan. `provider` says who collects: empty, the site by invoice; `stripe`, Stripe."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        PAST_DUE = "past_due"
        ENDED = "ended"

    class Provider(models.TextChoices):
        INVOICE = "", "By invoice"
        STRIPE = "stripe", "Stripe"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.OneToOneField(User, on_delete=models.SET_NULL, null=True, related_name="subscription")
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(max_length=16, choices=Status, default=Status.ACTIVE)
    provider = models.CharField(max_length=16, choices=Provider, blank=True, default=Provider.INVOICE)
    stripe_subscription_id = models.CharField(max_length=255, blank=True, default="", db_index=True)
    grace_until = models.DateTimeField(
        null=True, blank=True, help_text="Until when a failed payment leaves the tier as it is."
    )
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.tier_id} ({self.status})"

    @property
    def is_collected_by_stripe(self) -> bool:
        return self.provider == self.Provider.STRIPE and self.status != self.Status.ENDED


class PlanSpan(models.Model):
    """A stretch of time on one plan, at the price of then. A subscription's spans neither overlap nor leave gaps."""

    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="spans")
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="+")
    provider = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        help_text="Who collects the price of this stretch; empty, the site by invoice.",
    )
    monthly_price = models.DecimalField(max_digits=12, decimal_places=2)
    bills_overage = models.BooleanField(default=False)
    included_usage = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=models.F("starts_at")), name="plan_span_has_a_length"
            ),
            models.UniqueConstraint(
                fields=["subscription"], condition=Q(ends_at=None), name="one_open_span_per_subscription"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tier_id} from {self.starts_at:%Y-%m-%d}"


class StripeCustomer(models.Model):
    """Who a user is at Stripe. `synced_at` is when Stripe was asked for what was last taken over."""

    customer_id = models.CharField(primary_key=True, max_length=255)
    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="+")
    synced_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.customer_id


class StripeEvent(models.Model):
    """An event of Stripe's that has been dealt with: told again, it changes nothing."""

    event_id = models.CharField(primary_key=True, max_length=255)
    type = models.CharField(max_length=100)
    created_at = models.DateTimeField(help_text="When Stripe made it.")
    received_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.event_id
