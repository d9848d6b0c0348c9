"""The days of a report, in the ledger's zone or in that of whoever reads it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from accounts.exceptions import InvalidRequest
from accounts.time_zones import UTC_NAME

MOST_DAYS = 366
DEFAULT_DAYS = 30
_EARLIEST, _LATEST = date(1970, 1, 1), date(9990, 1, 1)


@dataclass(frozen=True, slots=True)
class Period:
    """Days, the first and the last included.

    In UTC they are the ledger's: an answer is of the day on which it was asked for. In other zones an answer is of the
    day in which it ended there.
    """

    first: date
    last: date
    zone: ZoneInfo

    @classmethod
    def between(cls, first: date | None, last: date | None, zone: ZoneInfo) -> Self:
        """Return the period, by default 30 days up to today; raise `InvalidRequest` for what is none."""
        for param, day in (("from", first), ("to", last)):
            if day is not None and not _EARLIEST <= day <= _LATEST:
                raise InvalidRequest(f"This must be a day between {_EARLIEST} and {_LATEST}.", param=param)
        last = last or datetime.now(zone).date()
        first = first or last - timedelta(days=DEFAULT_DAYS - 1)
        if last < first:
            raise InvalidRequest("`from` must not be after `to`, which is today if left out.", param="from")
        if (last - first).days >= MOST_DAYS:
            raise InvalidRequest(f"Ask for at most {MOST_DAYS} days at once.", param="from")
        return cls(first, last, zone)

    @property
    def is_of_the_ledger(self) -> bool:
        return self.zone.key == UTC_NAME

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]

    @property
    def starts(self) -> list[datetime]:
        """When each day begins, in UTC. Where clocks change a day has 23 or 25 hours, or is passed over whole."""
        return [self._start(day) for day in self.days]

    @property
    def ends_at(self) -> datetime:
        return self._start(self.last + timedelta(days=1))

    def _start(self, day: date) -> datetime:
        # Midnight that comes twice is meant the first time; one that is skipped is the moment of skipping.
        return datetime.combine(day, time(), self.zone).astimezone(UTC)
