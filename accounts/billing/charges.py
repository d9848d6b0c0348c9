"""What a month on some plans costs: arithmetic only."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from accounts.billing.money import shown, to_cents
from accounts.billing.months import Month

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan costs, as of when it was taken. Without a provider the site itself collects its price."""

    plan: str
    provider: str
    monthly_price: Decimal
    bills_overage: bool
    included_usage: Decimal


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time within one month on the same terms, and the ledger's cost of what was used in it."""

    terms: Terms
    length: timedelta
    usage: Decimal


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an invoice."""

    description: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Charges:
    """What is to be paid for a month; `overage` is the part of it that is for usage, `usage` what the ledger says."""

    lines: list[Line] = field(default_factory=list)
    usage: Decimal = Decimal(0)
    overage: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))


def charges_of(stretches: Iterable[Stretch], month: Month) -> Charges:
    """Return what the stretches of a month cost.

    Those on the same terms are one: a plan that was left and taken again costs its price of the month, to the cent.
    """
    lines: list[Line] = []
    usage = overage = Decimal(0)
    for stretch in _joined(stretches):
        lines += _price(stretch, month)
        beyond = _overage(stretch, month)
        lines += beyond
        overage += sum((line.amount for line in beyond), Decimal(0))
        usage += stretch.usage
    return Charges(lines, usage, overage)


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    joined: dict[Terms, Stretch] = {}
    for stretch in stretches:
        before = joined.get(stretch.terms, Stretch(stretch.terms, timedelta(), Decimal(0)))
        joined[stretch.terms] = Stretch(stretch.terms, before.length + stretch.length, before.usage + stretch.usage)
    return list(joined.values())


def _share(stretch: Stretch, month: Month) -> Fraction:
    return Fraction(stretch.length // _MICROSECOND, month.length // _MICROSECOND)


def _price(stretch: Stretch, month: Month) -> list[Line]:
    share = _share(stretch, month)
    amount = to_cents(Fraction(stretch.terms.monthly_price) * share)
    if stretch.terms.provider or not amount:
        return []
    part = "" if share == 1 else f" ({_days(share, month)})"
    return [Line(f"Plan {stretch.terms.plan}, {month}{part}", amount)]


def _days(share: Fraction, month: Month) -> str:
    days = month.length.days
    return f"{float(share * days):.2f}".rstrip("0").rstrip(".") + f" of {days} days"


def _overage(stretch: Stretch, month: Month) -> list[Line]:
    if not stretch.terms.bills_overage:
        return []
    included = Fraction(stretch.terms.included_usage) * _share(stretch, month)
    amount = to_cents(max(Fraction(0), Fraction(stretch.usage) - included))
    if not amount:
        return []
    told = f"{shown(to_cents(stretch.usage))} used, {shown(to_cents(included))} included"
    return [Line(f"Usage on plan {stretch.terms.plan}, {month} ({told})", amount)]
