"""Amounts of money: exact until they are written on a line, and there rounded half up to cents."""

from decimal import Decimal
from fractions import Fraction

from django.conf import settings


def to_cents(amount: Fraction | Decimal) -> Decimal:
    """Return an amount that is not negative, rounded half up to cents."""
    # In whole numbers: a quotient of decimals would be rounded itself, and a half be lost.
    exact = Fraction(amount) * 200
    cents = (exact.numerator // exact.denominator + 1) // 2
    return Decimal(cents).scaleb(-2)


def shown(amount: Decimal, currency: str | None = None) -> str:
    """Return an amount as it is shown, with its currency: `EUR 1,234.50`."""
    return f"{currency or settings.CURRENCY} {amount:,.2f}"
