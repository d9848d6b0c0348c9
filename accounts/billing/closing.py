"""Closes months: each month of a subscription once, one after the other, with an invoice where something is to pay."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.billing import invoices, subscriptions
from accounts.billing.charges import Charges, Line, charges_of
from accounts.billing.metering import count_unsettled, stretches_of
from accounts.billing.months import Month
from accounts.exceptions import InvalidRequest
from accounts.models import ClosedPeriod, Invoice, PlanSpan, Subscription, User

log = structlog.get_logger(__name__)

CLOSES_AFTER = timedelta(hours=1)
"""How long after its end a month may be closed: whatever began in it is in the ledger by then."""
WAITS_AT_MOST = timedelta(days=2)
"""How long after its end a month waits for answers under way. What they cost then is billed with the next month."""


def due(now: datetime) -> list[UUID]:
    """Return the subscriptions with a month that is over and not closed yet."""
    closed = ClosedPeriod.objects.filter(subscription=OuterRef("subscription")).order_by("-period_end")
    billable = PlanSpan.objects.filter(subscription=OuterRef("pk"), starts_at__lt=Month.of(now).start).exclude(
        ends_at__lte=Coalesce(closed.values("period_end")[:1], "starts_at")
    )
    waiting = ClosedPeriod.objects.filter(subscription=OuterRef("pk"), unsettled__gt=0)
    up_to_date = ClosedPeriod.objects.filter(subscription=OuterRef("pk"), period_end__gte=Month.of(now).start)
    # Of an account that was erased all has been billed, and its ledger is gone.
    left = Subscription.objects.exclude(user=None).filter(~Exists(up_to_date))
    return list(left.filter(Exists(billable) | Exists(waiting)).order_by("pk").values_list("pk", flat=True))


def close_months(subscription_id: UUID, now: datetime) -> list[UUID]:
    """Close the months of a subscription that are over, in their order; return the invoices that were issued."""
    subscription = Subscription.objects.filter(pk=subscription_id).first()
    if subscription is None:  # it went with its account
        return []
    issued = []
    while (month := _first_open_month(subscription)) is not None and _may_close(subscription, month, now):
        invoice = close_period(subscription, month.start)
        issued += [invoice.pk] if invoice else []
    return issued


@transaction.atomic
def close_period(subscription: Subscription, period_start: datetime) -> Invoice | None:
    """Close the month that begins at `period_start`; return its invoice, `None` where nothing is to pay.

    Whoever comes second, or again, is given the same invoice. Raises `InvalidRequest` for a month that cannot be closed
    yet: it is not over, answers that it is to pay are under way, or one before it is open.
    """
    locked = subscriptions.lock(subscription.pk)
    month = Month.of(period_start)
    closed = locked.closed_periods.filter(period_start=month.start).select_related("invoice").first()
    if closed is not None:
        return closed.invoice
    now = timezone.now()
    open_month = _first_open_month(locked)
    if open_month is None or month.start < open_month.start:
        return None
    if month != open_month or not _may_close(locked, month, now):
        raise InvalidRequest(f"{month} cannot be closed yet.")
    return _close(locked, month, now)


@transaction.atomic
def close_account(user: User, *, at: datetime) -> list[UUID]:
    """End a user's plan and bill all that is not billed yet, before the ledger goes with the account.

    No answer of the user's may be under way any more. Returns the invoices that were issued.
    """
    found = Subscription.objects.filter(user=user).first()
    if found is None:
        return []
    subscription = subscriptions.lock(found.pk)
    subscriptions.end(subscription, at=at)
    issued = []
    while (month := _first_open_month(subscription)) is not None and month.start <= at:
        invoice = _close(subscription, month, at)
        issued += [invoice.pk] if invoice else []
    return issued


def _first_open_month(subscription: Subscription) -> Month | None:
    """Return the first month that is to be closed; `None` where the subscription was on no plan since."""
    until = subscription.closed_periods.aggregate(until=Max("period_end"))["until"]
    if until is not None and subscription.closed_periods.filter(unsettled__gt=0).exists():
        return Month.of(until)
    spans = subscription.spans.order_by("starts_at")
    if until is not None:
        spans = spans.filter(Q(ends_at=None) | Q(ends_at__gt=until))
    first = spans.first()
    return Month.of(max(first.starts_at, until or first.starts_at)) if first else None


def _may_close(subscription: Subscription, month: Month, now: datetime) -> bool:
    if now < month.end + CLOSES_AFTER:
        return False
    return now >= month.end + WAITS_AT_MOST or not count_unsettled(subscription, month)


def _close(subscription: Subscription, month: Month, now: datetime) -> Invoice | None:
    # Counted before the ledger is read: an answer that ends in between is in the ledger, and looked for again in vain.
    unsettled = count_unsettled(subscription, month)
    charges = charges_of(stretches_of(subscription, month), month)
    lines = charges.lines + _late_lines(subscription)
    invoice = invoices.issue(subscription, month, lines, at=now) if lines else None
    ClosedPeriod.objects.create(
        subscription=subscription,
        period_start=month.start,
        period_end=month.end,
        invoice=invoice,
        usage=charges.usage,
        overage=charges.overage,
        unsettled=unsettled,
        closed_at=now,
    )
    log.info("period_closed", subscription_id=str(subscription.pk), month=str(month), unsettled=unsettled)
    return invoice


def _late_lines(subscription: Subscription) -> list[Line]:
    """Return what answers cost that were under way when their months were closed, and note it as billed."""
    lines = []
    for period in subscription.closed_periods.filter(unsettled__gt=0).order_by("period_start"):
        month = Month.of(period.period_start)
        period.unsettled = count_unsettled(subscription, month)
        charges = charges_of(stretches_of(subscription, month), month)
        late = _late_overage(period, charges)
        if late:
            lines.append(Line(f"Usage in {month} that ended after its invoice", late))
        period.usage, period.overage = charges.usage, period.overage + late
        period.save(update_fields=["unsettled", "usage", "overage"])
    return lines


def _late_overage(period: ClosedPeriod, charges: Charges) -> Decimal:
    return max(Decimal(0), charges.overage - period.overage)
