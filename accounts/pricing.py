"""What tokens cost: exact decimals, rounded on invoices only."""

from dataclasses import dataclass
from decimal import Decimal, localcontext

_MILLION = 1_000_000
_DIGITS = 50


@dataclass(frozen=True, slots=True)
class Prices:
    """A model version's prices for a million tokens, in the site's currency."""

    read: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    written: Decimal = Decimal(0)


def cost_of(prices: Prices, tokens_in: int, tokens_cached: int, tokens_out: int) -> Decimal:
    """Return the cost of an answer. `tokens_cached` are those of `tokens_in` that the server had read before."""
    with localcontext(prec=_DIGITS):
        read = (tokens_in - tokens_cached) * prices.read
        return (read + tokens_cached * prices.cached + tokens_out * prices.written) / _MILLION


def exact(cost: Decimal) -> str:
    """Return an amount with all of its digits and no zeros after them."""
    return format(cost.normalize(), "f")
