"""Usage as a table for spreadsheets."""

import csv
from collections.abc import Iterable, Mapping
from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID

from accounts.usage_reports import Row

CSV_TYPE = "text/csv"
_COLUMNS = ("in", "cached", "out", "cost", "answers")
_BEGIN_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_csv(key_name: str, rows: Iterable[Row[Any]], titles: Mapping[UUID, str] | None = None) -> str:
    """Return the rows below a line that names the columns, as RFC 4180 has it; with a column of `titles` by the key."""
    text = StringIO()
    table = csv.writer(text)
    table.writerow([key_name, *_COLUMNS, *(["title"] if titles is not None else [])])
    for row in rows:
        sums = row.sums
        numbers = (sums.tokens_in, sums.tokens_cached, sums.tokens_out, exact(sums.cost), sums.answers)
        title = [_harmless(titles.get(row.key, ""))] if titles is not None else []
        table.writerow([_harmless("" if row.key is None else str(row.key)), *numbers, *title])
    return text.getvalue()


def exact(cost: Decimal) -> str:
    """Return an amount with all of its digits and no zeros after them."""
    return format(cost.normalize(), "f")


def _harmless(cell: str) -> str:
    """Return the cell as text: spreadsheets run what looks like a formula, also one that a stranger has written."""
    return f"'{cell}" if cell.startswith(_BEGIN_A_FORMULA) else cell
