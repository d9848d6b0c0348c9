"""Who a user is at Stripe: one customer, made once."""

import hashlib

from accounts.models import StripeCustomer, User
from accounts.stripe.client import asking, stripe_client


def customer_of(user: User) -> str:
    """Return the id of the user's customer at Stripe, made at its first use. Raise `PaymentProviderUnavailable`."""
    known = StripeCustomer.objects.filter(user=user).first()
    if known is None:
        known, _ = StripeCustomer.objects.get_or_create(user=user, defaults={"customer_id": _make(user)})
    return known.customer_id


def _make(user: User) -> str:
    # Two at once, or a second try, get the same one; with another address it is another request.
    key = hashlib.sha256(f"{user.pk}:{user.email}".encode()).hexdigest()
    with asking("customers.create"):
        made = stripe_client().v1.customers.create(
            {"email": user.email, "metadata": {"user_id": str(user.pk)}}, {"idempotency_key": f"customer-{key[:32]}"}
        )
    return made.id
