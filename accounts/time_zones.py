"""In whose days and hours times are shown: a user's time zone."""

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from accounts.exceptions import InvalidRequest
from accounts.models import User

UTC_NAME = "UTC"
_OF_THE_MACHINE = {"localtime", "Factory"}


@cache
def time_zone_names() -> tuple[str, ...]:
    """Return the names that a user may choose from, sorted: UTC first."""
    names = available_timezones() - _OF_THE_MACHINE - {UTC_NAME}
    return UTC_NAME, *sorted(name for name in names if not name.startswith(("posix/", "right/")))


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone; raise `InvalidRequest` for a name that there is not."""
    if name not in _known():
        raise InvalidRequest(
            "There is no such time zone; name one as the IANA does, such as Europe/Paris.", param="time_zone"
        )
    return ZoneInfo(name)


def zone_of(user: User) -> ZoneInfo:
    """Return the user's time zone: UTC where none is kept, or where what is kept has gone from the IANA's list."""
    return ZoneInfo(user.time_zone if user.time_zone in _known() else UTC_NAME)


def choose_time_zone(user: User, name: str) -> None:
    """Keep a time zone, which the user has chosen."""
    zone_named(name)
    User.objects.filter(pk=user.pk).update(time_zone=name)


def suggest_time_zone(user: User, name: str) -> None:
    """Keep the time zone that the user's browser is in, unless one is kept already or it is none that is known here."""
    if name in _known():
        User.objects.filter(pk=user.pk, time_zone="").update(time_zone=name)


@cache
def _known() -> frozenset[str]:
    return frozenset(time_zone_names())
