"""Has Stripe stop collecting: for a plan that ended here, and for an account that is erased."""

from uuid import UUID

from stripe import InvalidRequestError

from accounts.models import StripeCustomer, Subscription, User
from accounts.stripe import overage, syncing
from accounts.stripe.client import asking, is_configured, is_missing, stripe_client
from accounts.stripe.customers import customers_at_stripe

_OVER = ("canceled", "incomplete_expired")


def stop_collecting(subscription_id: UUID) -> None:
    """Cancel at Stripe the subscription of a plan that has ended here. Raise `PaymentProviderUnavailable`.

    One that has been paid just when its grace ended is taken up again instead.
    """
    ended = Subscription.objects.filter(
        pk=subscription_id, provider=Subscription.Provider.STRIPE, status=Subscription.Status.ENDED
    ).first()
    if ended is None or not ended.stripe_subscription_id:
        return
    theirs = StripeCustomer.objects.filter(user=ended.user_id).first()
    if theirs is not None:
        syncing.sync(theirs.customer_id)
        ended.refresh_from_db()
    if ended.status != Subscription.Status.ENDED:
        return
    _cancel(ended.stripe_subscription_id)
    for invoice_id in ended.invoices.exclude(stripe_invoice_id="").values_list("pk", flat=True):
        overage.follow(invoice_id)


def erase_customer(user_id: UUID) -> int:
    """Delete the user's customer at Stripe, which ends what it pays for; return how many there were."""
    known = set(StripeCustomer.objects.filter(user_id=user_id).values_list("customer_id", flat=True))
    if is_configured():
        user = User.objects.filter(pk=user_id).first()
        with asking("customers.delete"):
            # Also one of which nobody heard here, as the answer was lost.
            known |= {each.id for each in customers_at_stripe(user)} if user else set()
            for customer_id in known:
                _delete(customer_id)
    StripeCustomer.objects.filter(user_id=user_id).delete()
    return len(known)


def _cancel(subscription_id: str) -> None:
    subscriptions = stripe_client().v1.subscriptions
    with asking("subscriptions.cancel"):
        try:
            if subscriptions.retrieve(subscription_id).status not in _OVER:
                subscriptions.cancel(subscription_id)
        except InvalidRequestError as error:
            if not is_missing(error):
                raise


def _delete(customer_id: str) -> None:
    try:
        stripe_client().v1.customers.delete(customer_id)
    except InvalidRequestError as error:
        if not is_missing(error):
            raise
