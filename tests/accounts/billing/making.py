"""Plans, months and used answers, each in one line."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from uuid import UUID

import time_machine

from accounts.billing import closing, subscriptions
from accounts.billing.closing import close_period
from accounts.models import Invoice, Tier, TokenReservation, UsageRecord, User
from foundation.ids import new_id
from tests.accounts.factories import make_user

_number = count(1)


def at(*when: int) -> datetime:
    return datetime(*when, tzinfo=UTC)


ISSUED = at(2026, 12, 1, 2)


def make_plan(price="10.00", *, name: str | None = None, included: str | None = None, **fields) -> Tier:
    """Make an offered plan; with `included`, usage beyond it is billed."""
    overage = {} if included is None else {"bills_overage": True, "included_usage": Decimal(included)}
    return Tier.objects.create(
        name=name or f"plan-{next(_number)}",
        requests_per_window=100,
        is_offered=True,
        monthly_price=Decimal(price),
        **overage,
        **fields,
    )


def make_usage(user: User, cost, when: datetime, *, day=None) -> UsageRecord:
    return UsageRecord.objects.create(
        generation_id=new_id(),
        user=user,
        model="large",
        tokens_in=10,
        tokens_out=10,
        cost=Decimal(cost),
        day=day or when.date(),
        created_at=when,
    )


def make_reservation(user: User, day) -> TokenReservation:
    return TokenReservation.objects.create(generation_id=new_id(), user=user, model="large", day=day, tokens=100)


def close_due(now: datetime) -> list[UUID]:
    """Close every month that is over, as the tasks do; return the invoices that were issued."""
    return [issued for plan in closing.due(now) for issued in closing.close_months(plan, now)]


def make_invoice(user: User | None = None, total="30.00", *, name: str = "Alice") -> Invoice:
    """Make the invoice of November 2026, issued on the first of December."""
    user = user or make_user(name=name)
    subscription = subscriptions.subscribe(user, make_plan(total), at=at(2026, 11, 1))
    with time_machine.travel(ISSUED, tick=False):
        invoice = close_period(subscription, at(2026, 11, 1))
    assert invoice is not None
    return invoice
