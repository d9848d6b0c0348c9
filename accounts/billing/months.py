"""The months that are billed: calendar months in UTC."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month: from its first moment up to the first of the next."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """Return the month in which a moment lies."""
        start = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        # No month is longer than 31 days, and none so short that 32 days lead past the next.
        return cls(start, (start + timedelta(days=32)).replace(day=1))

    @property
    def next(self) -> "Month":
        return Month.of(self.end)

    @property
    def first_day(self) -> date:
        return self.start.date()

    @property
    def last_day(self) -> date:
        return self.end.date() - timedelta(days=1)

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.start:%B %Y}"
