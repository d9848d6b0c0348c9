"""Who a user is at Stripe: one customer, made once, and found again if its answer was lost."""

import hashlib
from collections.abc import Callable, Iterator

import structlog
from django.utils import timezone
from stripe import Customer, InvalidRequestError

from accounts.models import StripeCustomer, User
from accounts.stripe.client import asking, is_missing, metadata_of, stripe_client

log = structlog.get_logger(__name__)

_USER_ID = "user_id"


def customer_of(user: User) -> str:
    """Return the id of the user's customer at Stripe, made at its first use. Raise `PaymentProviderUnavailable`."""
    known = StripeCustomer.objects.filter(user=user).first()
    if known is None:
        with asking("customers.create"):
            there = next(customers_at_stripe(user), None) or _make(user)
        known, _ = StripeCustomer.objects.get_or_create(user=user, defaults={"customer_id": there.id})
    return known.customer_id


def with_customer[T](user: User, ask: Callable[[str], T]) -> T:
    """Return what Stripe answers about the user's customer; one that Stripe has no longer is replaced by a new one.

    Stripe's staff delete customers, and those that were made with a key for trying it out are unknown to a live one.
    """
    customer_id = customer_of(user)
    try:
        return ask(customer_id)
    except InvalidRequestError as error:
        if not is_missing(error) or error.param != "customer":
            raise
    log.warning("stripe_customer_replaced", user_id=str(user.pk))
    StripeCustomer.objects.filter(pk=customer_id).delete()
    return ask(customer_of(user))


def customers_at_stripe(user: User) -> Iterator[Customer]:
    """Yield the customers that were made for a user; there is more than one only if something went wrong."""
    found = stripe_client().v1.customers.list({"email": user.email, "limit": 100})
    return (each for each in found.auto_paging_iter() if metadata_of(each).get(_USER_ID) == str(user.pk))


def _make(user: User) -> Customer:
    # Two at once get the same one. Stripe also repeats a failure for the same key: an hour later it is another.
    made_from = f"{user.pk}:{user.email}:{timezone.now():%Y-%m-%dT%H}"
    key = hashlib.sha256(made_from.encode()).hexdigest()
    return stripe_client().v1.customers.create(
        {"email": user.email, "metadata": {_USER_ID: str(user.pk)}}, {"idempotency_key": f"customer-{key[:32]}"}
    )
