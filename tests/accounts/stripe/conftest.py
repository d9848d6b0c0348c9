"""A site whose plans are paid by Stripe, and a Stripe that it talks to."""

import json
from datetime import UTC, datetime

import pytest
from django.test import Client
from stripe import WebhookSignature

from accounts.models import StripeCustomer, Tier
from accounts.stripe import client as stripe_client
from tests.accounts.factories import make_user
from tests.accounts.stripe.stub import KEY, running_stub

WEBHOOK_SECRET = "whsec_stub"


@pytest.fixture
def stripe(settings, monkeypatch):
    with running_stub() as stub:
        settings.STRIPE_SECRET_KEY, settings.STRIPE_WEBHOOK_SECRET = KEY, WEBHOOK_SECRET
        settings.STRIPE_API_BASE = stub.url
        monkeypatch.setattr("stripe.HTTPClient.INITIAL_DELAY", 0.001)
        monkeypatch.setattr("stripe.HTTPClient.MAX_DELAY", 0.001)
        yield stub
        stripe_client._client.cache_clear()


@pytest.fixture
def alice(db):
    return make_user("alice@example.com")


@pytest.fixture
def plus(db):
    Tier.objects.filter(pk="plus").update(is_offered=True, monthly_price=20, stripe_price_id="price_plus")
    return Tier.objects.get(pk="plus")


@pytest.fixture
def enterprise(db):
    Tier.objects.filter(pk="enterprise").update(is_offered=True, monthly_price=90, stripe_price_id="price_enterprise")
    return Tier.objects.get(pk="enterprise")


@pytest.fixture
def customer(stripe, alice):
    """Alice's customer at Stripe."""
    made = stripe.make("customers", object="customer", metadata={"user_id": str(alice.pk)})
    StripeCustomer.objects.create(customer_id=made["id"], user=alice)
    return made["id"]


def event(kind: str, told: dict, *, event_id: str = "evt_1", livemode: bool = False, **fields) -> str:
    """Return the body of a webhook call."""
    made = int(datetime.now(UTC).timestamp())
    return json.dumps({"id": event_id, "object": "event", "type": kind, "created": made, "livemode": livemode,
                       "data": {"object": told}, **fields})  # fmt: skip


def tell(body: str, *, secret: str = WEBHOOK_SECRET, timestamp: int | None = None, signature: str | None = None):
    """Post a webhook call as Stripe does, signed; return the response."""
    signed = WebhookSignature.generate_signature_header(body, secret, timestamp) if signature is None else signature
    return Client(enforce_csrf_checks=True).post(
        "/stripe/webhook", body, content_type="application/json", headers={"Stripe-Signature": signed}
    )
