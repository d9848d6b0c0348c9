"""Reads what a subscription used in a month, from the ledger."""

from decimal import Decimal

from django.db import connection
from django.db.models import Q, QuerySet

from accounts.billing.charges import Stretch, Terms
from accounts.billing.months import Month
from accounts.models import PlanSpan, Subscription, TokenReservation

# An answer counts when it ends, but on the day that paid for it: one that began in a month's last minute counts there.
_USAGE = """
SELECT span.id, sum(record.cost)
FROM accounts_planspan span JOIN accounts_usagerecord record
  ON record.user_id = %(user_id)s AND record.day BETWEEN %(first_day)s AND %(last_day)s
  AND least(
    greatest(record.created_at, record.day::timestamp AT TIME ZONE 'UTC'),
    (record.day + 1)::timestamp AT TIME ZONE 'UTC' - interval '1 microsecond'
  ) >= span.starts_at
  AND (span.ends_at IS NULL OR least(
    greatest(record.created_at, record.day::timestamp AT TIME ZONE 'UTC'),
    (record.day + 1)::timestamp AT TIME ZONE 'UTC' - interval '1 microsecond'
  ) < span.ends_at)
WHERE span.subscription_id = %(subscription_id)s
GROUP BY span.id
"""


def stretches_of(subscription: Subscription, month: Month) -> list[Stretch]:
    """Return the month's times on each plan, with what was used in them; the open one lasts to the month's end."""
    usage = _usage_by_span(subscription, month)
    return [
        Stretch(
            Terms(span.tier_id, span.provider, span.monthly_price, span.bills_overage, span.included_usage),
            min(span.ends_at or month.end, month.end) - max(span.starts_at, month.start),
            usage.get(span.pk, Decimal(0)),
        )
        for span in _spans_in(subscription, month)
    ]


def count_unsettled(subscription: Subscription, month: Month) -> int:
    """Return how many answers that the month is to pay are still under way."""
    days = (month.first_day, month.last_day)
    return TokenReservation.objects.filter(user=subscription.user_id, day__range=days).count()


def _spans_in(subscription: Subscription, month: Month) -> QuerySet[PlanSpan]:
    spans = subscription.spans.filter(Q(ends_at=None) | Q(ends_at__gt=month.start), starts_at__lt=month.end)
    return spans.order_by("starts_at")


def _usage_by_span(subscription: Subscription, month: Month) -> dict[int, Decimal]:
    parameters = {
        "user_id": subscription.user_id,
        "subscription_id": subscription.pk,
        "first_day": month.first_day,
        "last_day": month.last_day,
    }
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, parameters)
        return dict(cursor.fetchall())
