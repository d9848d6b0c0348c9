"""Who is on which plan: every change of it, and what becomes of a plan that is not paid.

Whoever changes a subscription, its spans, periods, invoices or credit notes holds the subscription's row locked.
"""

from datetime import datetime, timedelta
from typing import TypedDict, Unpack
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts import audit
from accounts.billing import mails
from accounts.models import BillingMail, PlanSpan, Subscription, Tier, User
from accounts.signals import subscription_ended

log = structlog.get_logger(__name__)

Status = Subscription.Status


class StripeIds(TypedDict, total=False):
    """What Stripe calls the subscription."""

    stripe_subscription_id: str


@transaction.atomic
def subscribe(
    user: User, tier: Tier, *, provider: str = "", at: datetime | None = None, **stripe_ids: Unpack[StripeIds]
) -> Subscription:
    """Put a user on a plan from `at` on, at the tier's price of now; `provider` collects it.

    On the same plan, by the same provider, the price stays what it was.
    """
    Subscription.objects.bulk_create([Subscription(user=user, tier=tier, provider=provider)], ignore_conflicts=True)
    subscription = Subscription.objects.select_for_update(no_key=True).get(user=user)
    subscription.provider = provider
    for name, value in stripe_ids.items():
        setattr(subscription, name, value)
    if not provider:
        subscription.stripe_subscription_id = ""
    if subscription.status == Status.ENDED:
        subscription.status, subscription.grace_until = Status.ACTIVE, None
    _move_to(subscription, tier, at or timezone.now())
    user.tier = tier
    return subscription


@transaction.atomic
def change_plan(subscription: Subscription, tier: Tier, *, at: datetime | None = None) -> None:
    """Change the plan from `at` on. A subscription that has ended does not change any more: it is begun anew."""
    locked = lock(subscription.pk)
    if locked.status != Status.ENDED:
        _move_to(locked, tier, at or timezone.now())
    _copy(locked, subscription)


@transaction.atomic
def end(subscription: Subscription, *, at: datetime | None = None) -> None:
    """End the plan at `at`: the user goes on with the default tier, and keeps everything."""
    locked = lock(subscription.pk)
    _end(locked, at or timezone.now())
    _copy(locked, subscription)


@transaction.atomic
def payment_failed(subscription: Subscription, *, at: datetime) -> None:
    """Start the grace of a plan whose payment failed; one that has started already goes on as it was."""
    locked = lock(subscription.pk)
    if locked.status == Status.ACTIVE:
        locked.status = Status.PAST_DUE
        locked.grace_until = at + timedelta(days=settings.BILLING_GRACE_DAYS)
        locked.save(update_fields=["status", "grace_until"])
        mails.owe(BillingMail.Kind.PAYMENT_FAILED, locked, plan=locked.tier_id, until=f"{locked.grace_until:%-d %B %Y}")
        log.info("payment_failed", subscription_id=str(locked.pk))
    _copy(locked, subscription)


@transaction.atomic
def payment_succeeded(subscription: Subscription, *, at: datetime) -> None:
    """End the grace: what was due has been paid, or is no longer asked for. A plan that has ended stays so."""
    locked = lock(subscription.pk)
    if locked.status == Status.PAST_DUE:
        locked.status, locked.grace_until = Status.ACTIVE, None
        locked.save(update_fields=["status", "grace_until"])
        log.info("payment_succeeded", subscription_id=str(locked.pk), at=at.isoformat())
    _copy(locked, subscription)


def end_graces(now: datetime) -> int:
    """End every plan whose grace is over; return how many were ended."""
    overdue = Subscription.objects.filter(status=Status.PAST_DUE, grace_until__lte=now)
    return sum(_end_grace(subscription_id, now) for subscription_id in overdue.values_list("pk", flat=True))


def lock(subscription_id: UUID) -> Subscription:
    """Return a subscription, locked until the caller's transaction ends."""
    return Subscription.objects.select_for_update(no_key=True).get(pk=subscription_id)


@transaction.atomic
def _end_grace(subscription_id: UUID, now: datetime) -> bool:
    subscription = lock(subscription_id)
    if subscription.status != Status.PAST_DUE or subscription.grace_until is None or subscription.grace_until > now:
        return False
    mails.owe(BillingMail.Kind.PLAN_ENDED, subscription, plan=subscription.tier_id)
    if subscription.user_id is not None:
        changes = {"tier": {"before": subscription.tier_id, "after": settings.DEFAULT_TIER}}
        reason = "It is not paid, and its grace is over."
        audit.keep_of_user("plan_ended", subscription.user_id, reason=reason, by=None, changes=changes)
    _end(subscription, now)
    return True


def _end(subscription: Subscription, at: datetime) -> None:
    if subscription.status == Status.ENDED:
        return
    _close_span(subscription, _no_earlier_than_known(subscription, at))
    subscription.status, subscription.grace_until = Status.ENDED, None
    subscription.save(update_fields=["status", "grace_until"])
    User.objects.filter(subscription=subscription).update(tier_id=settings.DEFAULT_TIER)
    ended = subscription.pk
    transaction.on_commit(lambda: subscription_ended.send(Subscription, subscription_id=ended), robust=True)
    log.info("subscription_ended", subscription_id=str(subscription.pk))


def _move_to(subscription: Subscription, tier: Tier, at: datetime) -> None:
    """Open a span on the tier, unless the open one is on it; every change of a subscription is stored."""
    current = subscription.spans.filter(ends_at=None).first()
    if current is None or (current.tier_id, current.provider) != (tier.pk, subscription.provider):
        begins = _no_earlier_than_known(subscription, at)
        _close_span(subscription, begins)
        PlanSpan.objects.create(
            subscription=subscription,
            tier=tier,
            provider=subscription.provider,
            monthly_price=tier.monthly_price,
            bills_overage=tier.bills_overage,
            included_usage=tier.included_usage,
            starts_at=begins,
        )
    subscription.tier = tier
    subscription.save()
    User.objects.filter(subscription=subscription).update(tier=tier)


def _close_span(subscription: Subscription, at: datetime) -> None:
    """End the open span; one that would have no length is as if it had never been."""
    subscription.spans.filter(ends_at=None, starts_at__gte=at).delete()
    subscription.spans.filter(ends_at=None).update(ends_at=at)


def _no_earlier_than_known(subscription: Subscription, at: datetime) -> datetime:
    """Return `at`, or the end of what is settled already: a change that is told late does not rewrite it."""
    spans = subscription.spans.aggregate(starts=Max("starts_at"), ends=Max("ends_at"))
    closed = subscription.closed_periods.aggregate(until=Max("period_end"))["until"]
    return max(moment for moment in (at, spans["starts"], spans["ends"], closed) if moment is not None)


def _copy(locked: Subscription, subscription: Subscription) -> None:
    """Show the caller's instance what was stored."""
    for name in ("tier_id", "status", "grace_until"):
        setattr(subscription, name, getattr(locked, name))
