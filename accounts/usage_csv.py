"""Usage as a table for spreadsheets."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any
from uuid import UUID

from accounts.conversation_titles import titles_of
from accounts.pricing import exact
from accounts.usage_periods import Period
from accounts.usage_reports import GROUPS, Row, all_rows

CSV_TYPE = "text/csv; charset=utf-8"
_COLUMNS = ("in", "cached", "out", "cost", "answers")
_BEGIN_A_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")
"""Spreadsheets also read the wide signs that Japanese is written with."""


@dataclass(frozen=True, slots=True)
class UsageTable:
    """A table, and what its file is called."""

    file_name: str
    text: str


def usage_table(user_id: UUID, period: Period, group_by: str) -> UsageTable:
    """Return every row as a table."""
    rows = all_rows(user_id, period, group_by)
    titles = titles_of(user_id, [row.key for row in rows if row.key]) if group_by == "conversation" else None
    name = f"usage-by-{group_by}-{period.first}-{period.last}.csv"
    return UsageTable(name, _as_csv(GROUPS[group_by], rows, titles))


def _as_csv(key_name: str, rows: Iterable[Row[Any]], titles: Mapping[UUID, str] | None = None) -> str:
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


def _harmless(cell: str) -> str:
    """Return the cell as text: spreadsheets run what looks like a formula, also one that a stranger has written."""
    return f"'{cell}" if cell.startswith(_BEGIN_A_FORMULA) else cell
