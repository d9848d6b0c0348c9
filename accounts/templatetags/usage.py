"""Shows amounts of money, and what is left of the limits, as the person who reads them expects."""

from decimal import ROUND_HALF_UP, Decimal

from django import template
from django.conf import settings

from accounts.limits_told import Warnings, warnings_for
from accounts.models import User

register = template.Library()
_CENT = Decimal("0.01")


@register.filter
def money(amount: Decimal) -> str:
    """Show what usage cost, in the site's currency: to the cent, and less than one unit by its first two digits."""
    digits = _CENT if amount == 0 or amount >= 1 else Decimal(1).scaleb(min(-2, amount.adjusted() - 1))
    return f"{settings.CURRENCY} {amount.quantize(digits, ROUND_HALF_UP):,f}"


@register.simple_tag
def limit_warnings(user: User) -> Warnings:
    """Return what is to be said above the composer of the limits that little is left of."""
    return warnings_for(user)
