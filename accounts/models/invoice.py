"""Invoices and credit notes. What was issued is never changed: it is paid, or credited."""

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models.subscription import Subscription
from accounts.models.user import User
from foundation.ids import new_id


class NumberSeries(models.Model):
    """The last number given out in a series, `invoice-2026` for one: no number is left out, none given twice."""

    name = models.CharField(primary_key=True, max_length=64)
    last = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class Invoice(models.Model):
    """What a subscription owes for one period. It names the customer as of then, and outlives the account."""

    class Status(models.TextChoices):
        OPEN = "open"
        PAID = "paid"
        CREDITED = "credited"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    number = models.CharField(max_length=32, unique=True)
    subscription = models.ForeignKey(Subscription, on_delete=models.PROTECT, related_name="invoices")
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="invoices")
    customer_name = models.CharField(max_length=150, blank=True)
    customer_email = models.EmailField(blank=True)
    issuer = models.TextField(blank=True, default="", db_default="", help_text="Who issued it, as of then.")
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    currency = models.CharField(max_length=3)
    total = models.DecimalField(max_digits=12, decimal_places=2)
    status = models.CharField(max_length=16, choices=Status, default=Status.OPEN)
    issued_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField()
    paid_at = models.DateTimeField(null=True, blank=True)
    stripe_invoice_id = models.CharField(max_length=255, blank=True, default="", db_index=True)

    class Meta:
        ordering = ("-issued_at",)
        constraints = [
            models.UniqueConstraint(fields=["subscription", "period_start"], name="one_invoice_per_period"),
            models.CheckConstraint(condition=Q(total__gte=0), name="invoices_are_not_negative"),
        ]
        indexes = [models.Index(fields=["user", "-issued_at"], name="invoices_by_user")]

    def __str__(self) -> str:
        return self.number


class InvoiceLine(models.Model):
    """One line of an invoice. `amount` is rounded to the currency's cents; a credit's is negative."""

    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveSmallIntegerField()
    description = models.CharField(max_length=255)
    amount = models.DecimalField(max_digits=12, decimal_places=2)

    class Meta:
        ordering = ("position",)
        constraints = [models.UniqueConstraint(fields=["invoice", "position"], name="one_line_per_position")]

    def __str__(self) -> str:
        return self.description


class ClosedPeriod(models.Model):
    """A subscription's month that has been billed, or had nothing to bill: it is closed once.

    `usage` is what the ledger holds for the month, `overage` what was billed of it. `unsettled` counts the answers that
    had been waited for long enough: what they cost is billed with the next month, and added here.
    """

    subscription = models.ForeignKey(Subscription, on_delete=models.PROTECT, related_name="closed_periods")
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, null=True, related_name="closed_period")
    usage = models.DecimalField(max_digits=24, decimal_places=12, default=Decimal(0))
    overage = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    unsettled = models.PositiveIntegerField(default=0)
    closed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subscription", "period_start"], name="one_closing_per_period")]

    def __str__(self) -> str:
        return f"{self.subscription_id} {self.period_start:%Y-%m}"


class BillingMail(models.Model):
    """A mail about money that is owed to its user: written with what it tells of, sent after that is certain."""

    class Kind(models.TextChoices):
        INVOICE_ISSUED = "invoice_issued"
        CREDIT_ISSUED = "credit_issued"
        PAYMENT_FAILED = "payment_failed"
        PLAN_ENDED = "plan_ended"

    kind = models.CharField(max_length=32, choices=Kind)
    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="+")
    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, null=True, related_name="+")
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["id"], condition=Q(sent_at=None), name="billing_mail_to_send")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.subscription_id}"


class CreditNote(models.Model):
    """Money given back, or no longer asked for, of one invoice."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    number = models.CharField(max_length=32, unique=True)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="credit_notes")
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    reason = models.TextField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(amount__gt=0), name="credits_are_positive")]

    def __str__(self) -> str:
        return self.number
