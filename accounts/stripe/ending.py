"""Has Stripe stop collecting: for a plan that ended here, and for an account that is erased."""

from uuid import UUID

from stripe import InvalidRequestError

from accounts.models import StripeCustomer, Subscription
from accounts.stripe.client import asking, is_configured, stripe_client

_OVER = ("canceled", "incomplete_expired")


def stop_collecting(subscription_id: UUID) -> None:
    """Cancel at Stripe the subscription of a plan that has ended here. Raise `PaymentProviderUnavailable`."""
    ended = Subscription.objects.filter(
        pk=subscription_id, provider=Subscription.Provider.STRIPE, status=Subscription.Status.ENDED
    ).first()
    if ended is None or not ended.stripe_subscription_id:
        return
    subscriptions = stripe_client().v1.subscriptions
    with asking("subscriptions.cancel"):
        try:
            if subscriptions.retrieve(ended.stripe_subscription_id).status not in _OVER:
                subscriptions.cancel(ended.stripe_subscription_id)
        except InvalidRequestError as error:
            if error.code != "resource_missing":
                raise


def erase_customer(user_id: UUID) -> int:
    """Delete the user's customer at Stripe, which ends what it pays for; return how many there were."""
    customer = StripeCustomer.objects.filter(user_id=user_id).first()
    if customer is None:
        return 0
    if is_configured():
        with asking("customers.delete"):
            try:
                stripe_client().v1.customers.delete(customer.customer_id)
            except InvalidRequestError as error:
                if error.code != "resource_missing":
                    raise
    customer.delete()
    return 1
