"""What Stripe is to know as soon as it happens here."""

from typing import Any
from uuid import UUID

from django.dispatch import receiver

from accounts.erasure import stores
from accounts.signals import invoice_changed, invoice_issued, subscription_ended
from accounts.stripe import tasks
from accounts.stripe.client import is_configured
from accounts.stripe.ending import erase_customer

stores.register("stripe", erase_customer, after=["last invoices"])


@receiver(invoice_issued, dispatch_uid="accounts.stripe.invoice_issued")
def _invoice_issued(invoice_id: UUID, **_kwargs: Any) -> None:
    if is_configured():
        tasks.push_overage.delay(str(invoice_id))


@receiver(invoice_changed, dispatch_uid="accounts.stripe.invoice_changed")
def _invoice_changed(invoice_id: UUID, **_kwargs: Any) -> None:
    if is_configured():
        tasks.follow_overage.delay(str(invoice_id))


@receiver(subscription_ended, dispatch_uid="accounts.stripe.subscription_ended")
def _subscription_ended(subscription_id: UUID, **_kwargs: Any) -> None:
    if is_configured():
        tasks.stop_collecting.delay(str(subscription_id))
