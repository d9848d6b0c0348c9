"""Invoices and credit notes: issued, paid, credited."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from accounts.billing import mails, subscriptions
from accounts.billing.charges import Line
from accounts.billing.money import shown, to_cents
from accounts.billing.months import Month
from accounts.billing.numbers import next_credit_number, next_invoice_number
from accounts.exceptions import InvalidRequest
from accounts.models import BillingMail, CreditNote, Invoice, InvoiceLine, Subscription, User
from accounts.signals import invoice_changed, invoice_issued

log = structlog.get_logger(__name__)

Status = Invoice.Status


def issue(subscription: Subscription, month: Month, lines: Sequence[Line], *, at: datetime) -> Invoice:
    """Issue the invoice of a month, in the transaction of a caller who holds the subscription locked."""
    user = subscription.user
    invoice = Invoice.objects.create(
        number=next_invoice_number(at),
        subscription=subscription,
        user=user,
        customer_name=user.name if user else "",
        customer_email=user.email if user else "",
        issuer=settings.INVOICE_ISSUER,
        period_start=month.start,
        period_end=month.end,
        currency=settings.CURRENCY,
        total=sum((line.amount for line in lines), Decimal(0)),
        issued_at=at,
        due_at=at + timedelta(days=settings.INVOICE_DUE_DAYS),
    )
    InvoiceLine.objects.bulk_create(
        InvoiceLine(invoice=invoice, position=position, description=line.description, amount=line.amount)
        for position, line in enumerate(lines, 1)
    )
    mails.owe(BillingMail.Kind.INVOICE_ISSUED, subscription, invoice=invoice)
    transaction.on_commit(lambda: invoice_issued.send(Invoice, invoice_id=invoice.pk), robust=True)
    log.info("invoice_issued", invoice_id=str(invoice.pk), number=invoice.number)
    return invoice


@transaction.atomic
def mark_paid(invoice: Invoice, *, at: datetime) -> None:
    """Note that an invoice was paid; again, it changes nothing. Raises `InvalidRequest` for one credited in full."""
    subscription = subscriptions.lock(invoice.subscription_id)
    invoice.refresh_from_db()
    if invoice.status == Status.CREDITED:
        raise InvalidRequest("This invoice was credited in full: there is nothing to pay.")
    if invoice.status == Status.OPEN:
        invoice.status, invoice.paid_at = Status.PAID, at
        invoice.save(update_fields=["status", "paid_at"])
        _tell_of_change(invoice)
        log.info("invoice_paid", invoice_id=str(invoice.pk))
    _end_grace_unless_owing(subscription, at)


@transaction.atomic
def credit(invoice: Invoice, amount: Decimal, *, reason: str, by: User | None) -> CreditNote:
    """Give back an amount, or no longer ask for it: at most what is left. Raises `InvalidRequest`."""
    subscription = subscriptions.lock(invoice.subscription_id)
    invoice.refresh_from_db()
    left = left_of(invoice)
    _check_credit(amount, left, reason, invoice.currency)
    now = timezone.now()
    note = CreditNote.objects.create(
        number=next_credit_number(now),
        invoice=invoice,
        amount=amount,
        reason=reason.strip(),
        created_by=by,
        created_at=now,
    )
    if amount == left:
        invoice.status = Status.CREDITED
        invoice.save(update_fields=["status"])
        _end_grace_unless_owing(subscription, now)
    _tell_of_change(invoice)
    told = {"number": note.number, "amount": shown(amount, invoice.currency)}
    mails.owe(BillingMail.Kind.CREDIT_ISSUED, subscription, invoice=invoice, **told)
    log.info("invoice_credited", invoice_id=str(invoice.pk), number=note.number)
    return note


def left_of(invoice: Invoice) -> Decimal:
    """Return how much of an invoice has not been credited."""
    credited: Decimal | None = invoice.credit_notes.aggregate(sum=Sum("amount"))["sum"]
    return invoice.total - (credited or Decimal(0))


def start_graces(now: datetime) -> int:
    """Start the grace of each plan by invoice with an invoice that is overdue; return how many were started.

    The grace begins when that is seen: whoever is told of it has all of it.
    """
    overdue = Invoice.objects.filter(status=Status.OPEN, due_at__lte=now).values("subscription")
    owing = Subscription.objects.filter(provider="", status=Subscription.Status.ACTIVE, pk__in=overdue)
    return sum(_start_grace(subscription, now) for subscription in list(owing))


@transaction.atomic
def _start_grace(subscription: Subscription, now: datetime) -> bool:
    locked = subscriptions.lock(subscription.pk)
    if locked.status != Subscription.Status.ACTIVE or locked.provider or not is_owing(locked, now):
        return False
    subscriptions.payment_failed(locked, at=now)
    return True


def is_owing(subscription: Subscription, now: datetime) -> bool:
    """Say whether an invoice of the subscription is overdue."""
    return subscription.invoices.filter(status=Status.OPEN, due_at__lte=now).exists()


def _tell_of_change(invoice: Invoice) -> None:
    transaction.on_commit(lambda: invoice_changed.send(Invoice, invoice_id=invoice.pk), robust=True)


def _end_grace_unless_owing(subscription: Subscription, now: datetime) -> None:
    # Where a provider collects, it says itself when what failed has been paid.
    if not subscription.provider and not is_owing(subscription, now):
        subscriptions.payment_succeeded(subscription, at=now)


def _check_credit(amount: Decimal, left: Decimal, reason: str, currency: str) -> None:
    if not reason.strip():
        raise InvalidRequest("reason: Say why the amount is credited.", param="reason")
    if not amount.is_finite() or amount <= 0 or amount != to_cents(amount):
        raise InvalidRequest("amount: This must be an amount above zero, in whole cents.", param="amount")
    if amount > left:
        raise InvalidRequest(f"amount: At most {shown(left, currency)} of this invoice is left.", param="amount")
