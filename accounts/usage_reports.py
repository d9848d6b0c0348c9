"""What a user used: the ledger's sums by day, by model, by conversation."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

from django.db import connection

from accounts import rollups
from accounts.usage_periods import Period

GROUPS = {"day": "day", "model": "model", "conversation": "conversation_id"}
"""What rows may be grouped by, and how the key is called then."""

_ROLLED_UP = """
SELECT day, model, answers, tokens_in, tokens_cached, tokens_out, cost FROM accounts_dailyusage
WHERE user_id = %(user_id)s AND day = ANY(%(final)s)
UNION ALL
SELECT day, model, 1, tokens_in, tokens_cached, tokens_out, cost FROM accounts_usagerecord
WHERE user_id = %(user_id)s AND day = ANY(%(others)s) AND tokens_in + tokens_out > 0
"""
_RECORDS = """
SELECT model, conversation_id, 1 AS answers, tokens_in, tokens_cached, tokens_out, cost FROM accounts_usagerecord
WHERE user_id = %(user_id)s AND day BETWEEN %(first)s AND %(last)s AND tokens_in + tokens_out > 0
"""
_RECORDS_OF_THE_ZONE = """
SELECT %(first)s::date + width_bucket(created_at, %(starts)s::timestamptz[]) - 1 AS day, model, conversation_id,
       1 AS answers, tokens_in, tokens_cached, tokens_out, cost
FROM accounts_usagerecord
WHERE user_id = %(user_id)s AND created_at >= %(starts_at)s AND created_at < %(ends_at)s AND tokens_in + tokens_out > 0
"""
_SUMS = "sum(tokens_in), sum(tokens_cached), sum(tokens_out), sum(cost), sum(answers)"
_BY_DAY = f"SELECT day, {_SUMS} FROM used GROUP BY day ORDER BY day"  # noqa: S608 — constants
_BY_MODEL = f"SELECT model, {_SUMS} FROM used GROUP BY model ORDER BY model"  # noqa: S608
_BY_DAY_AND_BY_MODEL = f"""
SELECT day, model, {_SUMS} FROM used GROUP BY GROUPING SETS ((day), (model)) ORDER BY day, model
"""  # noqa: S608
_BY_CONVERSATION = f"""
SELECT conversation_id, {_SUMS} FROM used
WHERE %(after)s::uuid IS NULL OR conversation_id < %(after)s OR conversation_id IS NULL
GROUP BY conversation_id ORDER BY conversation_id DESC NULLS LAST LIMIT %(limit)s
"""  # noqa: S608
_LARGEST = f"""
SELECT conversation_id, {_SUMS} FROM used GROUP BY conversation_id
ORDER BY sum(tokens_in + tokens_out) DESC, conversation_id LIMIT %(limit)s
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Sums:
    """Tokens read, those of them that were cached, tokens written, what they cost, and in how many answers."""

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)
    answers: int = 0

    def __add__(self, other: Self) -> "Sums":
        return Sums(
            self.tokens_in + other.tokens_in,
            self.tokens_cached + other.tokens_cached,
            self.tokens_out + other.tokens_out,
            self.cost + other.cost,
            self.answers + other.answers,
        )

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Row[Key]:
    """What was used in one day, with one model, or in one conversation (`None`: in none)."""

    key: Key
    sums: Sums


def by_day(user_id: UUID, period: Period) -> list[Row[date]]:
    """Return the days on which anything was used, oldest first."""
    return _rows(_BY_DAY, *_days_and_models(user_id, period))


def by_model(user_id: UUID, period: Period) -> list[Row[str]]:
    """Return the models that were used, by name."""
    return _rows(_BY_MODEL, *_days_and_models(user_id, period))


def by_day_and_by_model(user_id: UUID, period: Period) -> tuple[list[Row[date]], list[Row[str]]]:
    """Return what `by_day` and `by_model` do, with the records read once."""
    used, parameters = _days_and_models(user_id, period)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH used AS ({used}) {_BY_DAY_AND_BY_MODEL}", parameters)
        rows = [(day, model, _sums(sums)) for day, model, *sums in cursor.fetchall()]
    days = [Row(day, sums) for day, _, sums in rows if day is not None]
    return days, [Row(model, sums) for _, model, sums in rows if model is not None]


def by_conversation(
    user_id: UUID, period: Period, *, after: UUID | None = None, limit: int | None = None
) -> list[Row[UUID | None]]:
    """Return the conversations that used anything, newest first, at last what was used outside of any."""
    used, parameters = _records(user_id, period)
    return _rows(_BY_CONVERSATION, used, parameters | {"after": after, "limit": limit})


def largest_conversations(user_id: UUID, period: Period, *, limit: int) -> list[Row[UUID | None]]:
    """Return the conversations that used most."""
    used, parameters = _records(user_id, period)
    return _rows(_LARGEST, used, parameters | {"limit": limit})


def all_rows(user_id: UUID, period: Period, group_by: str) -> list[Row[Any]]:
    """Return every row of one of the `GROUPS`."""
    return _READERS[group_by](user_id, period)


def total_of(rows: Iterable[Row[Any]]) -> Sums:
    """Return the sums of all rows together."""
    return sum((row.sums for row in rows), Sums())


def _days_and_models(user_id: UUID, period: Period) -> tuple[str, dict[str, Any]]:
    if not period.is_of_the_ledger:
        return _records(user_id, period)
    final, others = rollups.days_to_read(period.first, period.last)
    return _ROLLED_UP, {"user_id": user_id, "final": final, "others": others}


def _records(user_id: UUID, period: Period) -> tuple[str, dict[str, Any]]:
    parameters: dict[str, Any] = {"user_id": user_id, "first": period.first, "last": period.last}
    if period.is_of_the_ledger:
        return _RECORDS, parameters
    starts = period.starts
    return _RECORDS_OF_THE_ZONE, parameters | {"starts": starts, "starts_at": starts[0], "ends_at": period.ends_at}


def _rows(query: str, used: str, parameters: dict[str, Any]) -> list[Row[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(f"WITH used AS ({used}) {query}", parameters)
        return [Row(key, _sums(sums)) for key, *sums in cursor.fetchall()]


def _sums(columns: Sequence[Any]) -> Sums:
    tokens_in, tokens_cached, tokens_out, cost, answers = columns
    return Sums(int(tokens_in), int(tokens_cached), int(tokens_out), cost, int(answers))


_READERS: dict[str, Callable[[UUID, Period], list[Row[Any]]]] = {
    "day": by_day,
    "model": by_model,
    "conversation": by_conversation,
}
