"""Brings a plan in line with what Stripe has: the truth is fetched, so events may come in any order, and twice."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import connection, transaction
from stripe import InvalidRequestError
from stripe import Subscription as StripeSubscription

from accounts.billing import subscriptions
from accounts.models import Erasure, StripeCustomer, Subscription, Tier, User
from accounts.stripe.client import asking, is_missing, stripe_client

log = structlog.get_logger(__name__)

STRIPE = Subscription.Provider.STRIPE
_PAID = ("active", "trialing")
_LIVE = (*_PAID, "past_due")


@dataclass(frozen=True, slots=True)
class Plan:
    """The subscription at Stripe that counts: of several live ones a paid one before others, then the newest."""

    subscription_id: str
    is_paid: bool
    prices: frozenset[str]


def sync(customer_id: str) -> None:
    """Do here what Stripe says of a customer's plan. Raise `PaymentProviderUnavailable`."""
    if not StripeCustomer.objects.filter(pk=customer_id).exists():
        log.info("stripe_customer_unknown")
        return
    asked_at = _now()
    with asking("subscriptions.list"):
        try:
            plan = _plan_at_stripe(customer_id)
        except InvalidRequestError as error:
            if not is_missing(error):
                raise
            if not _was_deleted(customer_id):
                # With the key of another account at Stripe everybody's plan would end.
                log.error("stripe_customer_is_of_another_account")
                return
            plan = None
    _apply(customer_id, plan, asked_at)


def _plan_at_stripe(customer_id: str) -> Plan | None:
    found = stripe_client().v1.subscriptions.list({"customer": customer_id, "status": "all", "limit": 100})
    return _plan_of(found.auto_paging_iter())


def _was_deleted(customer_id: str) -> bool:
    try:
        customer = stripe_client().v1.customers.retrieve(customer_id)
    except InvalidRequestError as error:
        if not is_missing(error):
            raise
        return False
    return bool(getattr(customer, "deleted", False))


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def _plan_of(found: Iterable[StripeSubscription]) -> Plan | None:
    live = [each for each in found if each.status in _LIVE]
    if not live:
        return None
    best = max(live, key=lambda each: (each.status in _PAID, each.created, each.id))
    if len(live) > 1:
        log.error("stripe_subscriptions_doubled", count=len(live))
    prices = frozenset(item.price.id for item in best["items"].data)
    return Plan(best.id, best.status in _PAID, prices)


@transaction.atomic
def _apply(customer_id: str, plan: Plan | None, asked_at: datetime) -> None:
    """Take over what was asked for at a time, unless what was asked for later has been taken over already.

    Whatever Stripe has changed since then it tells in an event of its own, which asks again.
    """
    customers = StripeCustomer.objects.select_for_update(of=("self",), no_key=True).select_related("user")
    customer = customers.filter(pk=customer_id).first()
    if customer is None or (customer.synced_at is not None and customer.synced_at >= asked_at):
        return
    if Erasure.objects.filter(user_id=customer.user_id).exists():
        return  # its plan has ended for good, whatever Stripe still collects until it is told
    customer.synced_at = asked_at
    customer.save(update_fields=["synced_at"])
    ours = Subscription.objects.filter(user_id=customer.user_id).first()
    if plan is None:
        if ours is not None and ours.provider == STRIPE:
            subscriptions.end(ours, at=asked_at)
        return
    tier = Tier.objects.filter(stripe_price_id__in=plan.prices).order_by("name").first()
    if tier is None:
        log.error("stripe_price_unknown", prices=sorted(plan.prices))
        return
    _take_over(customer.user, ours, plan, tier, asked_at)


def _take_over(user: User, ours: Subscription | None, plan: Plan, tier: Tier, at: datetime) -> None:
    is_the_same = ours is not None and ours.stripe_subscription_id == plan.subscription_id
    has_ended = ours is not None and ours.status == Subscription.Status.ENDED
    if is_the_same and has_ended and not plan.is_paid:
        return  # its grace is over, and it has not been paid since
    ours = subscriptions.subscribe(user, tier, provider=STRIPE, at=at, stripe_subscription_id=plan.subscription_id)
    if plan.is_paid:
        subscriptions.payment_succeeded(ours, at=at)
    else:
        subscriptions.payment_failed(ours, at=at)
