"""When there is more, in the reader's own time: east and west of Greenwich, and on the days on which clocks change."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from accounts.exceptions import RequestsExceeded
from accounts.limits_told import refusal_told, spoken
from accounts.models import User
from tests.accounts.quotas.conftest import make_user_with, reserve, use

PARIS, NEW_YORK = "Europe/Paris", "America/New_York"


def user_in(zone):
    return User(email="ann@example.com", time_zone=zone)


@pytest.mark.parametrize(
    ("zone", "now", "at", "told"),
    [
        ("", "2026-06-01T20:00Z", "2026-06-02T00:00Z", "tomorrow at 00:00"),
        (PARIS, "2026-03-28T22:30Z", "2026-03-29T00:00Z", "tomorrow at 01:00"),
        (PARIS, "2026-03-28T23:30Z", "2026-03-29T00:00Z", "at 01:00"),
        (PARIS, "2026-03-29T00:30Z", "2026-03-29T01:00Z", "at 03:00"),  # there is no hour from two to three
        (PARIS, "2026-03-29T12:00Z", "2026-03-30T00:00Z", "tomorrow at 02:00"),
        (PARIS, "2026-10-24T20:00Z", "2026-10-25T00:00Z", "tomorrow at 02:00"),  # the first of two
        (PARIS, "2026-10-25T12:00Z", "2026-10-26T00:00Z", "tomorrow at 01:00"),
        (NEW_YORK, "2026-03-07T20:00Z", "2026-03-08T00:00Z", "at 19:00"),
        (NEW_YORK, "2026-03-08T04:30Z", "2026-03-08T07:00Z", "tomorrow at 03:00"),  # there is no hour from two to three
        (NEW_YORK, "2026-03-08T20:00Z", "2026-03-09T00:00Z", "at 20:00"),
        (NEW_YORK, "2026-10-31T20:00Z", "2026-11-01T00:00Z", "at 20:00"),
        (NEW_YORK, "2026-11-01T20:00Z", "2026-11-02T00:00Z", "at 19:00"),
        ("Asia/Kathmandu", "2026-06-01T20:00Z", "2026-06-02T00:00Z", "at 05:45"),
        ("Pacific/Kiritimati", "2026-12-30T20:00Z", "2026-12-31T00:00Z", "at 14:00"),
        ("Pacific/Honolulu", "2026-12-31T12:00Z", "2027-01-01T00:00Z", "at 14:00"),
        ("Pacific/Honolulu", "2026-12-31T12:00Z", "2027-01-02T12:00Z", "on 2 January at 02:00"),
    ],
)
def test_a_moment_is_told_in_the_readers_own_time(zone, now, at, told):
    with time_machine.travel(datetime.fromisoformat(now), tick=False):
        assert spoken(datetime.fromisoformat(at), user_in(zone)) == told


@pytest.mark.parametrize("zone", [PARIS, NEW_YORK])
def test_it_is_the_minute_after_also_where_that_is_another_day(zone):
    local_midnight = datetime(2026, 6, 2, tzinfo=UTC) - (timedelta(hours=2) if zone == PARIS else timedelta(hours=-4))
    with time_machine.travel(local_midnight - timedelta(minutes=5), tick=False):
        assert spoken(local_midnight - timedelta(seconds=59.5), user_in(zone)) == "tomorrow at 00:00"
        assert spoken(local_midnight - timedelta(seconds=60), user_in(zone)) == "at 23:59"
        assert spoken(local_midnight, user_in(zone)) == "tomorrow at 00:00"


@pytest.mark.django_db
@pytest.mark.parametrize("zone", [PARIS, NEW_YORK])
def test_a_refusal_says_its_time_to_a_person_in_words(zone):
    user = make_user_with(requests=1, window_seconds=7200)
    user.time_zone = zone
    use(user, ago=timedelta(hours=1))
    with pytest.raises(RequestsExceeded) as refused:
        reserve(user)
    told = refusal_told(refused.value, user)
    assert "Z" not in told
    assert spoken(datetime.fromisoformat(refused.value.details["resets_at"]), user) in told
    assert refusal_told(refused.value, None) == refused.value.message
