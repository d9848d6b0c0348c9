"""Shows amounts of money."""

from decimal import Decimal

from django import template

from accounts.billing.money import shown

register = template.Library()


@register.filter
def money(amount: Decimal, currency: str = "") -> str:
    """Show an amount with its currency, the site's where none is named."""
    return shown(amount, currency)
