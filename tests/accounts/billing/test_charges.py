"""What a month costs: shares of prices, usage beyond what is included, cents."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.billing.charges import Stretch, Terms, charges_of
from accounts.billing.money import shown, to_cents
from accounts.billing.months import Month
from tests.accounts.billing.making import at

MONTHS = st.datetimes(datetime(2020, 1, 1), datetime(2420, 1, 1), timezones=st.just(UTC)).map(Month.of)
PRICES = st.decimals(min_value=0, max_value=100_000, places=2)
COSTS = st.decimals(min_value=0, max_value=10_000, places=12)


def terms(price, *, plan="plus", provider="", overage=False, included=0) -> Terms:
    return Terms(plan, provider, Decimal(price), overage, Decimal(included))


@pytest.mark.parametrize(
    ("moment", "days"),
    [
        (at(2026, 1, 31, 23, 59, 59), 31),
        (at(2026, 2, 1), 28),
        (at(2028, 2, 29, 12), 29),
        (at(2100, 2, 3), 28),
        (at(2026, 4, 30), 30),
        (at(2026, 12, 31), 31),
    ],
)
def test_a_month_has_its_days_and_the_next_begins_where_it_ends(moment, days):
    month = Month.of(moment)
    assert month.length == timedelta(days=days)
    assert month.start <= moment < month.end == month.next.start
    assert (month.last_day - month.first_day).days == days - 1


@pytest.mark.parametrize(("amount", "cents"), [("0.005", "0.01"), ("0.004999999999", "0.00"), ("1.115", "1.12")])
def test_halves_of_a_cent_are_rounded_up(amount, cents):
    assert to_cents(Decimal(amount)) == Decimal(cents)


def test_a_third_of_a_price_is_not_rounded_before_it_is_a_line():
    assert to_cents(Fraction(1, 200)) == Decimal("0.01")
    assert to_cents(Fraction(1, 200) - Fraction(1, 10**40)) == 0


@given(MONTHS, PRICES, st.lists(st.integers(min_value=1), min_size=1, max_size=12))
def test_a_plan_taken_again_and_again_at_one_price_costs_its_month_to_the_cent(month, price, weights):
    seconds = int(month.length.total_seconds())
    cuts = sorted({0, seconds, *(weight % seconds for weight in weights)})
    lengths = [timedelta(seconds=end - start) for start, end in pairwise(cuts)]
    charges = charges_of([Stretch(terms(price), length, Decimal(0)) for length in lengths], month)
    assert charges.total == price


@given(
    MONTHS,
    st.lists(st.tuples(PRICES, st.booleans(), PRICES, COSTS, st.integers(0, 10**12)), max_size=6),
)
def test_what_was_used_was_included_or_is_billed_and_a_total_is_its_lines(month, drawn):
    whole = month.length // timedelta(microseconds=1)
    stretches = [
        Stretch(
            terms(price, plan=f"plan-{number}", overage=overage, included=included),
            timedelta(microseconds=length % whole),
            usage,
        )
        for number, (price, overage, included, usage, length) in enumerate(drawn)
    ]
    charges = charges_of(stretches, month)
    assert charges.total == sum(line.amount for line in charges.lines)
    assert all(line.amount > 0 and line.amount == line.amount.quantize(Decimal("0.01")) for line in charges.lines)
    assert charges.usage == sum(stretch.usage for stretch in stretches)
    paid_by_price = sum(
        min(Fraction(one.usage), Fraction(one.terms.included_usage) * Fraction(one.length / month.length))
        for one in stretches
        if one.terms.bills_overage
    )
    metered = sum(Fraction(one.usage) for one in stretches if one.terms.bills_overage)
    # Each line is rounded once; the share here is a float.
    assert abs(Fraction(charges.overage) + paid_by_price - metered) <= Fraction(6, 100)


def test_stretches_on_other_terms_are_lines_of_their_own():
    month = Month.of(at(2026, 11, 1))
    half = month.length / 2
    charges = charges_of(
        [Stretch(terms(10), half, Decimal(0)), Stretch(terms(30, plan="pro"), half, Decimal(0))], month
    )
    assert [(line.description, line.amount) for line in charges.lines] == [
        ("Plan plus, November 2026 (15 of 30 days)", Decimal("5.00")),
        ("Plan pro, November 2026 (15 of 30 days)", Decimal("15.00")),
    ]


@pytest.mark.parametrize(("hours", "told"), [(12, "0.5"), (240, "10"), (241, "10.04"), (720 - 12, "29.5")])
def test_the_days_of_a_part_of_a_month_are_told(hours, told):
    charges = charges_of([Stretch(terms(10), timedelta(hours=hours), Decimal(0))], Month.of(at(2026, 11, 1)))
    assert charges.lines[0].description == f"Plan plus, November 2026 ({told} of 30 days)"


def test_a_price_that_changed_is_a_line_of_its_own():
    month = Month.of(at(2026, 11, 1))
    half = month.length / 2
    charges = charges_of([Stretch(terms(10), half, Decimal(0)), Stretch(terms(12), half, Decimal(0))], month)
    assert [line.amount for line in charges.lines] == [Decimal("5.00"), Decimal("6.00")]


def test_only_usage_beyond_what_is_included_is_billed_and_only_where_the_plan_says_so():
    month = Month.of(at(2026, 11, 1))
    used = Decimal("7.505")
    with_overage = terms(10, overage=True, included=5)
    assert charges_of([Stretch(terms(10), month.length, used)], month).overage == 0
    charges = charges_of([Stretch(with_overage, month.length, used)], month)
    assert charges.overage == Decimal("2.51")
    assert charges.lines[1].description == "Usage on plan plus, November 2026 (EUR 7.51 used, EUR 5.00 included)"
    assert charges_of([Stretch(with_overage, month.length / 2, used)], month).overage == Decimal("5.01")
    assert charges_of([Stretch(with_overage, month.length, Decimal("4.99"))], month).overage == 0


def test_what_a_provider_collects_is_not_asked_for_again():
    month = Month.of(at(2026, 11, 1))
    stripe = terms(10, provider="stripe", overage=True)
    charges = charges_of([Stretch(stripe, month.length, Decimal(3))], month)
    assert [line.amount for line in charges.lines] == [Decimal("3.00")]


def test_an_amount_is_shown_with_its_currency(settings):
    settings.CURRENCY = "CHF"
    assert shown(Decimal("1234.5")) == "CHF 1,234.50"
    assert shown(Decimal(0), "EUR") == "EUR 0.00"
