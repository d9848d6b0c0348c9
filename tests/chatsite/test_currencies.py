"""Which currencies a site can count in."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite.currencies import currency


@pytest.mark.parametrize("code", ["EUR", "USD", "CHF", "PLN"])
def test_a_currency_with_cents_is_taken(code):
    assert currency(code) == code


@pytest.mark.parametrize("code", ["JPY", "KWD", "eur", "", "EURO", "€", "EUR\n"])
def test_one_without_cents_or_what_is_none_is_refused(code):
    with pytest.raises(ImproperlyConfigured, match="CURRENCY is"):
        currency(code)
