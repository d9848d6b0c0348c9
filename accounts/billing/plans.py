"""What people may choose for themselves, and what they would owe today."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.billing import invoices, subscriptions
from accounts.billing.charges import Charges, charges_of
from accounts.billing.metering import stretches_of
from accounts.billing.months import Month
from accounts.exceptions import InvalidRequest
from accounts.models import Subscription, Tier, User
from accounts.stripe.client import is_configured


def offered_plans() -> QuerySet[Tier]:
    """Return the plans that people may choose, the cheapest first."""
    return Tier.objects.filter(is_offered=True).exclude(pk=settings.DEFAULT_TIER).order_by("monthly_price", "name")


def plan_of(user: User) -> Subscription | None:
    """Return the user's subscription, unless it has ended."""
    current = Subscription.objects.exclude(status=Subscription.Status.ENDED).filter(user=user)
    return current.select_related("tier").first()


def is_paid_by_stripe(tier: Tier) -> bool:
    """Say whether a plan is begun on Stripe's pages."""
    return bool(is_configured() and tier.stripe_price_id)


@transaction.atomic
def choose_plan(user: User, tier: Tier, *, at: datetime) -> Subscription:
    """Put a user on the plan that they chose, to be paid by invoice. Raises `InvalidRequest`."""
    if not offered_plans().filter(pk=tier.pk).exists() or is_paid_by_stripe(tier):
        raise InvalidRequest("This plan cannot be chosen here.", param="tier")
    known = _locked(user)
    if known is not None:
        _refuse_if_stripe_collects(known)
        if invoices.is_owing(known, at):
            raise InvalidRequest("An invoice is overdue. Pay it first; then every plan can be chosen.")
    return subscriptions.subscribe(user, tier, at=at)


@transaction.atomic
def leave_plan(user: User, *, at: datetime) -> None:
    """End the plan of a user who wants to; without one, nothing happens. Raises `InvalidRequest`."""
    known = _locked(user)
    if known is not None:
        _refuse_if_stripe_collects(known)
        subscriptions.end(known, at=at)


def charges_so_far(subscription: Subscription, now: datetime) -> Charges:
    """Return what the month under way has cost until now."""
    month = Month.of(now)
    return charges_of(stretches_of(subscription, month, until=now), month)


def _locked(user: User) -> Subscription | None:
    found = Subscription.objects.filter(user=user).values_list("pk", flat=True).first()
    return subscriptions.lock(found) if found else None


def _refuse_if_stripe_collects(subscription: Subscription) -> None:
    is_over = subscription.status == Subscription.Status.ENDED
    if subscription.provider == Subscription.Provider.STRIPE and not is_over:
        raise InvalidRequest("Your plan is paid by card: change or end it under “Payment and plan”.")
