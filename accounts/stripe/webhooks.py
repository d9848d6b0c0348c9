"""What Stripe tells: checked, dealt with, remembered."""

import json
from datetime import UTC, datetime

import structlog
from django.conf import settings
from stripe import Event, SignatureVerificationError, Webhook

from accounts.exceptions import InvalidWebhook
from accounts.models import StripeEvent
from accounts.stripe import overage, syncing
from accounts.stripe.client import is_live

log = structlog.get_logger(__name__)

_TOLERANCE_SECONDS = 300
_CHANGES_A_PLAN = {
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "checkout.session.async_payment_failed",
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "invoice.paid",
    "invoice.payment_failed",
}


def receive(body: bytes, signature: str | None) -> None:
    """Do what an event asks for; one that was dealt with before changes nothing, and so does one of another kind.

    Raise `InvalidWebhook` for what Stripe has not sent just now, `PaymentProviderUnavailable` where it must send again.
    """
    event = _verified(body, signature)
    if event.type not in _CHANGES_A_PLAN or StripeEvent.objects.filter(pk=event.id).exists():
        return
    told = event.data.object.to_dict()
    if customer_id := told.get("customer"):
        syncing.sync(customer_id)
    if event.type == "invoice.paid":
        overage.note_paid(told["id"])
    made_at = datetime.fromtimestamp(event.created, UTC)
    # Last: should the process end before, Stripe sends it again, and it is dealt with again.
    StripeEvent.objects.bulk_create(
        [StripeEvent(event_id=event.id, type=event.type, created_at=made_at)], ignore_conflicts=True
    )
    log.info("stripe_event", type=event.type)


def _verified(body: bytes, signature: str | None) -> Event:
    refused = InvalidWebhook("This is not a message of the payment provider's, or it is too old.")
    try:
        text = body.decode()
        event: Event = Webhook.construct_event(
            text, signature, settings.STRIPE_WEBHOOK_SECRET, tolerance=_TOLERANCE_SECONDS, api_key="none"
        )
    except (SignatureVerificationError, UnicodeDecodeError, json.JSONDecodeError, ValueError, KeyError) as error:
        log.warning("stripe_event_refused", error=type(error).__name__)
        raise refused from error
    if event.livemode != is_live():
        log.warning("stripe_event_of_another_mode", livemode=event.livemode)
        raise refused
    return event
