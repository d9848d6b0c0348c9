"""The numbers of invoices and credit notes: one after the other within a year, none left out."""

from datetime import UTC, datetime

from django.db import connection

# The row stays locked until the commit: a number that is given back with its transaction is the next one's.
_NEXT = """
INSERT INTO accounts_numberseries (name, last) VALUES (%s, 1)
ON CONFLICT (name) DO UPDATE SET last = accounts_numberseries.last + 1 RETURNING last
"""


def next_invoice_number(at: datetime) -> str:
    """Return the next number of the year, `2026-000123`, in the caller's transaction."""
    return _next("invoice", "", at)


def next_credit_number(at: datetime) -> str:
    """Return the next number of the year's credit notes, `CN-2026-000123`, in the caller's transaction."""
    return _next("credit", "CN-", at)


def _next(kind: str, prefix: str, at: datetime) -> str:
    assert connection.in_atomic_block
    year = at.astimezone(UTC).year
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [f"{kind}-{year}"])
        (number,) = cursor.fetchone()
    return f"{prefix}{year}-{number:06}"
