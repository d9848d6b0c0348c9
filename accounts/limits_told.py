"""What a person is told of the limits: how much is left, and when there is more, in the person's own time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format

from accounts import quotas
from accounts.models import User
from accounts.quotas import Limit
from accounts.quotas.allowances import length
from accounts.time_zones import zone_of
from foundation.errors import DomainError

_SCARCE = 0.2
_WARNED_OF = ("requests", "tokens_per_day")
_NAMES = {
    "requests": "Messages",
    "tokens_per_day": "Tokens a day",
    "tokens_per_minute": "Tokens a minute",
    "concurrent_generations": "Answers at once",
}


@dataclass(frozen=True, slots=True)
class ToldLimit:
    """One limit, named in words. `width` is the length of its bar, in hundredths; `when` says when there is more."""

    name: str
    limit: Limit
    width: float
    when: str

    @property
    def is_scarce(self) -> bool:
        return self.limit.remaining <= self.limit.limit * _SCARCE


@dataclass(frozen=True, slots=True)
class Warnings:
    """What is said above the composer, and after how many seconds it is not true any more."""

    sentences: tuple[str, ...]
    stale_seconds: int | None


def told_limits(user: User) -> list[ToldLimit]:
    """Return every limit of the user's tier, as the page shows it."""
    return [_told(limit, user) for limit in quotas.limits_of(user)]


def warnings_for(user: User) -> Warnings:
    """Return a sentence for each limit of messages or of the day's tokens that little is left of."""
    scarce = [each for each in told_limits(user) if each.limit.name in _WARNED_OF and each.is_scarce]
    return Warnings(tuple(_warning(each.limit, user) for each in scarce), _seconds_until_more(scarce))


def spoken(at: datetime, user: User) -> str:
    """Say when something happens in the user's time: `at 14:05`, `tomorrow at 09:00`, `on 4 March at 09:00`.

    It is the minute after: nobody is to come too early.
    """
    zone = zone_of(user)
    local = (at + timedelta(minutes=1, microseconds=-1)).replace(second=0, microsecond=0).astimezone(zone)
    clock = date_format(local, "H:i")
    match (local.date() - timezone.now().astimezone(zone).date()).days:
        case 0:
            return f"at {clock}"
        case 1:
            return f"tomorrow at {clock}"
    return f"on {date_format(local, 'j F')} at {clock}"


def refusal_told(error: DomainError, user: object) -> str:
    """Return a refusal's sentence; where it says when to come again, in the time of the user, if there is one."""
    resets_at = error.details.get("resets_at") if isinstance(error.details, dict) else None
    if not isinstance(resets_at, str) or not isinstance(user, User):
        return error.message
    return error.message.replace(f"at {resets_at}", spoken(datetime.fromisoformat(resets_at), user))


def _told(limit: Limit, user: User) -> ToldLimit:
    name = _NAMES[limit.name]
    if limit.name == "requests" and limit.window_seconds is not None:
        name = f"{name} within {length(limit.window_seconds)}"
    if limit.model is not None:
        name = f"{name}, with {limit.model}"
    width = round(100 * min(limit.used, limit.limit) / limit.limit, 2) if limit.limit else 100.0
    return ToldLimit(name, limit, width, _when(limit, user))


def _when(limit: Limit, user: User) -> str:
    if limit.resets_at is None:
        return "There is room again as soon as an answer ends." if limit.used else ""
    if not limit.used:
        return ""
    at = spoken(limit.resets_at, user)
    if limit.name == "requests":
        return f"There is one more {at}."
    return f"There are more {at}." if limit.name == "tokens_per_minute" else f"All are there again {at}."


def _warning(limit: Limit, user: User) -> str:
    what = "message" if limit.name == "requests" else "token"
    left = f"{limit.remaining:,} {what}{'' if limit.remaining == 1 else 's'}" if limit.remaining else f"no {what}s"
    of_what = f" with {limit.model}" if limit.model else ""
    today = "" if limit.name == "requests" else " today"
    return f"You have {left} left{of_what}{today}. {_when(limit, user)}".rstrip()


def _seconds_until_more(scarce: Iterable[ToldLimit]) -> int | None:
    soonest = min((each.limit.resets_at for each in scarce if each.limit.resets_at is not None), default=None)
    return None if soonest is None else max(1, int((soonest - timezone.now()).total_seconds()) + 1)
