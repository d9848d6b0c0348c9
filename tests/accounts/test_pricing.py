"""What tokens cost."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from accounts.pricing import Prices, cost_of

prices = st.decimals(0, Decimal("99999999.9999"), places=4, allow_nan=False, allow_infinity=False)
tokens = st.integers(0, 2**31 - 1)


def test_what_the_server_had_read_before_has_its_own_price():
    price = Prices(read=Decimal("3.0000"), cached=Decimal("0.3000"), written=Decimal("15.0000"))
    assert cost_of(price, 1_000_000, 0, 0) == 3
    assert cost_of(price, 1_000_000, 1_000_000, 0) == Decimal("0.3")
    assert cost_of(price, 1000, 400, 200) == Decimal("0.00492")


def test_one_token_at_the_smallest_price_costs_something():
    assert cost_of(Prices(written=Decimal("0.0001")), 0, 0, 1) == Decimal("0.0000000001")


def test_nothing_costs_nothing():
    assert cost_of(Prices(Decimal(1), Decimal(1), Decimal(1)), 0, 0, 0) == 0
    assert cost_of(Prices(), 10, 5, 10) == 0


@given(prices, prices, prices, tokens, tokens, st.data())
def test_it_is_exact(read, cached, written, tokens_in, tokens_out, data):
    tokens_cached = data.draw(st.integers(0, tokens_in))
    cost = cost_of(Prices(read, cached, written), tokens_in, tokens_cached, tokens_out)
    # In ten-thousandths of the currency a million tokens cost a whole number.
    whole = [int(price * 10_000) for price in (read, cached, written)]
    exact = (tokens_in - tokens_cached) * whole[0] + tokens_cached * whole[1] + tokens_out * whole[2]
    assert int(cost.scaleb(10)) == exact == cost.scaleb(10)
