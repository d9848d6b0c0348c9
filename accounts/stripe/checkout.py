"""Where a person pays: Stripe's own pages, for a plan to begin with and for everything after that."""

from uuid import UUID

from stripe import InvalidRequestError, StripeClient
from stripe.checkout import Session

from accounts.exceptions import InvalidRequest
from accounts.models import Subscription, Tier, User
from accounts.stripe.client import asking, metadata_of, stripe_client
from accounts.stripe.customers import with_customer


def checkout_url(user: User, tier: Tier, *, attempt: UUID, done_url: str, back_url: str) -> str:
    """Return the address at which the user subscribes to a plan; the same one for the same `attempt`.

    Raise `InvalidRequest`, or `PaymentProviderUnavailable`.
    """
    if not (tier.is_offered and tier.stripe_price_id):
        raise InvalidRequest("This plan cannot be chosen here.", param="tier")
    known = Subscription.objects.filter(user=user).first()
    if known is not None and known.is_collected_by_stripe:
        raise InvalidRequest("You have a plan already: change it under “Payment and plan”.", param="tier")

    def begin(customer: str) -> Session:
        client = stripe_client()
        _close_others(client, customer, attempt)
        return client.v1.checkout.sessions.create(
            {
                "mode": "subscription",
                "customer": customer,
                "client_reference_id": str(user.pk),
                "line_items": [{"price": tier.stripe_price_id, "quantity": 1}],
                "metadata": {"attempt": str(attempt)},
                "subscription_data": {"metadata": {"user_id": str(user.pk)}},
                "success_url": done_url,
                "cancel_url": back_url,
            },
            {"idempotency_key": f"checkout-{user.pk}-{tier.pk}-{attempt}"},
        )

    with asking("checkout.sessions.create"):
        return _address(with_customer(user, begin).url)


def portal_url(user: User, *, back_url: str) -> str:
    """Return the address at which the user changes cards and plan, or ends it. Raise `PaymentProviderUnavailable`."""
    sessions = stripe_client().v1.billing_portal.sessions
    with asking("billing_portal.sessions.create"):
        session = with_customer(user, lambda customer: sessions.create({"customer": customer, "return_url": back_url}))
    return _address(session.url)


def _close_others(client: StripeClient, customer: str, attempt: UUID) -> None:
    """Close what was begun in another tab: nobody is to pay for two plans."""
    begun = client.v1.checkout.sessions.list({"customer": customer, "status": "open", "limit": 100})
    for session in begun.auto_paging_iter():
        if metadata_of(session).get("attempt") == str(attempt):
            continue
        try:
            client.v1.checkout.sessions.expire(session.id)
        except InvalidRequestError:
            continue  # it has just been paid, or has run out


def _address(url: str | None) -> str:
    assert url is not None
    return url
