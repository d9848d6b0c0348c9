"""What Stripe tells: checked, dealt with, remembered."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from django.conf import settings
from stripe import SignatureVerificationError, WebhookSignature

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


@dataclass(frozen=True, slots=True)
class Told:
    """One event: what kind of thing happened to what, and whose that is. No more of it is believed."""

    event_id: str
    type: str
    created_at: datetime
    is_live: bool
    thing_id: str
    customer_id: str


def receive(body: bytes, signature: str) -> None:
    """Do what an event asks for; one that was dealt with before changes nothing, and so does one of another kind.

    Raise `InvalidWebhook` for what Stripe has not sent just now, `PaymentProviderUnavailable` where it must send again.
    """
    told = _verified(body, signature)
    if told.type not in _CHANGES_A_PLAN or StripeEvent.objects.filter(pk=told.event_id).exists():
        return
    if told.customer_id:
        syncing.sync(told.customer_id)
        if told.type == "invoice.paid":
            overage.note_paid(told.thing_id)
    # Last: should the process end before, Stripe sends it again, and it is dealt with again.
    StripeEvent.objects.bulk_create(
        [StripeEvent(event_id=told.event_id, type=told.type, created_at=told.created_at)], ignore_conflicts=True
    )
    log.info("stripe_event", type=told.type)


def _verified(body: bytes, signature: str) -> Told:
    refused = InvalidWebhook("This is not a message of the payment provider's, or it is too old.")
    try:
        WebhookSignature.verify_header(body.decode(), signature, settings.STRIPE_WEBHOOK_SECRET, _TOLERANCE_SECONDS)
        told = _told(orjson.loads(body))
    except (SignatureVerificationError, ValueError, KeyError, TypeError) as error:
        log.warning("stripe_event_refused", error=type(error).__name__)
        raise refused from error
    if told.is_live != is_live():
        log.warning("stripe_event_of_another_mode", is_live=told.is_live)
        raise refused
    return told


def _told(event: dict[str, Any]) -> Told:
    made_at = datetime.fromtimestamp(event["created"], UTC)
    about = dict(event["data"]["object"])
    names = (about.get("id"), about.get("customer"))
    thing_id, customer_id = (name if isinstance(name, str) else "" for name in names)
    return Told(str(event["id"]), str(event["type"]), made_at, bool(event["livemode"]), thing_id, customer_id)
