"""Work with Stripe in the background. Each task may run any number of times."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from accounts.exceptions import PaymentProviderUnavailable
from accounts.models import StripeCustomer, StripeEvent, Subscription
from accounts.stripe import ending, overage, syncing
from accounts.stripe.client import is_configured

_AGAIN: dict[str, Any] = {
    "autoretry_for": (PaymentProviderUnavailable,),
    "retry_backoff": 10,
    "retry_backoff_max": 600,
    "max_retries": 8,
}
_LOOK_BACK = timedelta(days=7)
_EVENTS_KEPT = timedelta(days=90)
"""Stripe sends an event again for three days by itself, and for thirty if somebody asks it to."""


@shared_task(**_AGAIN)  # type: ignore[untyped-decorator]
def push_overage(invoice_id: str) -> None:
    """Put an invoice on Stripe's next bill, unless it is there."""
    overage.push(UUID(invoice_id))


@shared_task(**_AGAIN)  # type: ignore[untyped-decorator]
def follow_overage(invoice_id: str) -> None:
    """Have Stripe's next bill ask for no more than is left of an invoice, and note one that was paid there."""
    overage.follow(UUID(invoice_id))


@shared_task(**_AGAIN)  # type: ignore[untyped-decorator]
def stop_collecting(subscription_id: str) -> None:
    """Cancel at Stripe a plan that has ended here."""
    ending.stop_collecting(UUID(subscription_id))


@shared_task(**_AGAIN)  # type: ignore[untyped-decorator]
def sync_customer(customer_id: str) -> None:
    """Do here what Stripe says of a customer's plan."""
    syncing.sync(customer_id)


@shared_task  # type: ignore[untyped-decorator]
def forget_old_events() -> None:
    """Forget the events that Stripe does not send again any more."""
    StripeEvent.objects.filter(received_at__lt=timezone.now() - _EVENTS_KEPT).delete()


@shared_task  # type: ignore[untyped-decorator]
def push_forgotten_overages() -> int:
    """Push the invoices that nobody has pushed: a process ended, or Stripe was away for long; return how many."""
    if not is_configured():
        return 0
    forgotten = list(overage.pending())
    for invoice_id in forgotten:
        push_overage.delay(str(invoice_id))
    return len(forgotten)


@shared_task  # type: ignore[untyped-decorator]
def compare_with_stripe() -> int:
    """Have plans and open invoices compared with Stripe's, for events that never came; return of how many customers."""
    if not is_configured():
        return 0
    customers = list(StripeCustomer.objects.values_list("pk", flat=True))
    for customer_id in customers:
        sync_customer.delay(customer_id)
    for invoice_id in list(overage.being_collected()):
        follow_overage.delay(str(invoice_id))
    stripes = Subscription.objects.filter(provider=Subscription.Provider.STRIPE)
    ended = stripes.filter(status=Subscription.Status.ENDED, spans__ends_at__gte=timezone.now() - _LOOK_BACK)
    for subscription_id in ended.values_list("pk", flat=True).distinct():
        stop_collecting.delay(str(subscription_id))
    return len(customers)
