"""Putting an account on another tier: through its plan where it has one, so that the bill follows."""

from django.db import transaction

from accounts.billing.subscriptions import change_plan
from accounts.exceptions import InvalidRequest
from accounts.models import Subscription, Tier, User


@transaction.atomic
def put_on_tier(user: User, tier: Tier) -> None:
    """Change an account's tier from now on. Raises `InvalidRequest` for a plan that is changed at Stripe."""
    plan = Subscription.objects.filter(user=user).exclude(status=Subscription.Status.ENDED).first()
    if plan is None:
        User.objects.filter(pk=user.pk).update(tier=tier)
    elif plan.provider == Subscription.Provider.STRIPE:
        raise InvalidRequest(f"The plan of {user.email} is at Stripe: it is changed there, and the tier follows.")
    else:
        change_plan(plan, tier)
    user.tier = tier
