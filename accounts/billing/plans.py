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


def subscription_of(user: User) -> Subscription | None:
    """Return the user's subscription, also one that has ended."""
    return Subscription.objects.filter(user=user).select_related("tier").first()


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
    subscription = subscriptions.subscribe(user, tier, at=at)
    # Asked last: the account's row is locked now, so that one which is being closed has been, or waits for the commit.
    if not User.objects.filter(pk=user.pk, is_active=True).exists():
        raise InvalidRequest("This account is closed.")
    return subscription


@transaction.atomic
def leave_plan(user: User, *, at: datetime) -> None:
    """End the plan of a user who wants to; without one, nothing happens. Raises `InvalidRequest`."""
    known = _locked(user)
    if known is not None:
        _refuse_if_stripe_collects(known)
        subscriptions.end(known, at=at)


def charges_in(subscription: Subscription, month: Month) -> Charges:
    """Return what a month under way will cost if the plan goes on as it is and nothing more is used."""
    return charges_of(stretches_of(subscription, month), month)


def _locked(user: User) -> Subscription | None:
    found = Subscription.objects.filter(user=user).values_list("pk", flat=True).first()
    return subscriptions.lock(found) if found else None


def _refuse_if_stripe_collects(subscription: Subscription) -> None:
    if subscription.is_collected_by_stripe:
        raise InvalidRequest("Your plan is paid by card: change or end it under “Payment and plan”.")
