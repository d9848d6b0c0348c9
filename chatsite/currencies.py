"""The currency that a site counts in."""

import re

from django.core.exceptions import ImproperlyConfigured

_WITHOUT_CENTS = {
    "BHD", "BIF", "CLP", "DJF", "GNF", "IQD", "ISK", "JOD", "JPY", "KMF", "KRW", "KWD", "LYD", "OMR", "PYG", "RWF",
    "TND", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF",
}  # fmt: skip
"""Their smallest unit is the whole or the thousandth: amounts in cents would be wrong by a hundred or by ten."""


def currency(code: str) -> str:
    """Return an ISO 4217 code as it is; raise `ImproperlyConfigured` for what is none, or has no cents."""
    if not re.fullmatch("[A-Z]{3}", code) or code in _WITHOUT_CENTS:
        raise ImproperlyConfigured(f"CURRENCY is {code!r}: it must be the code of a currency with cents, such as EUR.")
    return code
