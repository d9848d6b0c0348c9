"""`/v1/usage`."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts import usage_reports
from accounts.models import DailyUsage, UsageRecord
from accounts.rollups import roll_up, roll_up_recent
from accounts.usage_periods import Period
from foundation.ids import new_id
from tests.accounts.factories import bearer, make_key, make_user
from tests.accounts.usage.records import make_record

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def user():
    return make_user()


@pytest.fixture
def usage(client, user):
    headers = bearer(make_key(user, ["read"]))

    def ask(**query):
        return client.get("/v1/usage", {"from": "2026-03-01", "to": "2026-03-31", **query}, headers=headers)

    return ask


def test_days_are_listed_with_their_sums(usage, user):
    make_record(user, NOON, cost="0.000000000001")
    make_record(user, NOON, cost="0.1")
    make_record(user, NOON + timedelta(days=1), cost="2")
    body = usage().json()
    assert body["data"] == [
        {"day": "2026-03-04", "in": 20, "cached": 8, "out": 10, "cost": "0.100000000001", "answers": 2},
        {"day": "2026-03-05", "in": 10, "cached": 4, "out": 5, "cost": "2", "answers": 1},
    ]
    assert body["totals"] == {"in": 30, "cached": 12, "out": 15, "cost": "2.100000000001", "answers": 3}
    assert (body["next_cursor"], body["from"], body["to"]) == (None, "2026-03-01", "2026-03-31")


def test_models_are_listed_by_name(usage, user):
    for model in ("small", "large", "small"):
        make_record(user, NOON, model=model)
    assert [(row["model"], row["answers"]) for row in usage(group_by="model").json()["data"]] == [
        ("large", 1),
        ("small", 2),
    ]


def test_conversations_are_listed_by_pages_newest_first_and_what_was_outside_of_any_last(usage, user):
    conversations = [new_id() for _ in range(5)]
    for conversation_id in [*conversations, None]:
        make_record(user, NOON, conversation_id=conversation_id)
    listed, pages, cursor = [], 0, {}
    while cursor is not None:
        body = usage(group_by="conversation", limit="2", **cursor).json()
        listed += [row["conversation_id"] for row in body["data"]]
        assert body["totals"]["answers"] == 6
        pages += 1
        cursor = {"cursor": body["next_cursor"]} if body["next_cursor"] else None
    assert listed == [*(str(each) for each in reversed(conversations)), None]
    assert pages == 3


def test_only_the_callers_own_is_told(usage, user):
    make_record(make_user(), NOON)
    for group_by in ("day", "model", "conversation"):
        body = usage(group_by=group_by).json()
        assert body["data"] == []
        assert body["totals"] == {"in": 0, "cached": 0, "out": 0, "cost": "0", "answers": 0}


def test_final_days_are_read_from_their_roll_up(usage, user):
    make_record(user, NOON)
    roll_up(NOON.date(), NOON.date())
    DailyUsage.objects.update(answers=7)
    assert usage().json()["totals"]["answers"] == 7
    assert usage(group_by="model").json()["totals"]["answers"] == 7


def test_what_was_used_a_moment_ago_is_there(client, user):
    roll_up_recent(days=2)
    make_record(user, datetime.now(UTC))
    assert client.get("/v1/usage", headers=bearer(make_key(user))).json()["totals"]["answers"] == 1


def test_a_roll_up_of_a_day_that_is_not_final_is_not_believed(usage, user):
    make_record(user, NOON)
    DailyUsage.objects.create(
        user=user, day=NOON.date(), model="small", answers=9, tokens_in=9, tokens_cached=9, tokens_out=9
    )
    [row] = usage().json()["data"]
    assert row["answers"] == 1


def test_the_last_thirty_days_are_the_default(client, user):
    today = datetime.now(UTC).date()
    body = client.get("/v1/usage", headers=bearer(make_key(user))).json()
    assert (body["from"], body["to"]) == (str(today - timedelta(days=29)), str(today))


@pytest.mark.parametrize(
    ("zone", "days", "ended_at", "day"),
    [
        ("Europe/Paris", "2026-03-28", "2026-03-27T23:30:00Z", "2026-03-28"),
        ("Europe/Paris", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29"),
        ("Europe/Paris", "2026-03-29", "2026-03-29T21:59:59Z", "2026-03-29"),  # a day of 23 hours
        ("Europe/Paris", "2026-03-30", "2026-03-29T22:00:00Z", "2026-03-30"),
        ("Europe/Paris", "2025-10-26", "2025-10-26T22:59:59Z", "2025-10-26"),  # a day of 25 hours
        ("Europe/Paris", "2025-10-27", "2025-10-26T23:00:00Z", "2025-10-27"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-04"),  # it had no midnight
        ("America/Sao_Paulo", "2018-11-03", "2018-11-04T02:59:59Z", "2018-11-03"),
        ("America/Sao_Paulo", "2018-02-17", "2018-02-18T02:30:00Z", "2018-02-17"),  # 23:30 came twice
        ("America/Sao_Paulo", "2026-03-04", "2026-03-05T02:59:59Z", "2026-03-04"),
        ("America/Havana", "2025-11-02", "2025-11-02T04:30:00Z", "2025-11-02"),  # its midnight came twice
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", "2011-12-31"),  # the 30th never was
        ("Asia/Kathmandu", "2026-03-05", "2026-03-04T18:15:00Z", "2026-03-05"),
    ],
)
def test_days_are_those_of_the_zone_that_is_asked_for(usage, user, zone, days, ended_at, day):
    make_record(user, datetime.fromisoformat(ended_at))
    year = {
        "from": str(date.fromisoformat(days) - timedelta(days=2)),
        "to": str(date.fromisoformat(days) + timedelta(days=2)),
    }
    assert [row["day"] for row in usage(time_zone=zone, **year).json()["data"]] == [day]
    only = {"from": days, "to": days}
    assert usage(time_zone=zone, **only).json()["totals"]["answers"] == 1
    assert usage(time_zone=zone, group_by="conversation", **only).json()["totals"]["answers"] == 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3 * 24 * 60), min_size=1, max_size=8),
    st.sampled_from(["Europe/Paris", "America/Sao_Paulo", "Pacific/Apia", "Asia/Tokyo", "UTC"]),
)
def test_every_answer_is_in_one_day_whatever_the_zone(usage, user, minutes, zone):
    UsageRecord.objects.all().delete()
    for minute in minutes:
        make_record(user, datetime(2026, 3, 28, tzinfo=UTC) + timedelta(minutes=minute))
    by_day, by_model = (usage(group_by=each, time_zone=zone, to="2026-04-02").json() for each in ("day", "model"))
    assert sum(row["answers"] for row in by_day["data"]) == len(minutes)
    assert by_day["totals"] == by_model["totals"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "20260301"}, "from"),
        ({"from": "2026-02-30"}, "from"),
        ({"from": "2026-3-1"}, "from"),
        ({"to": ""}, "to"),
        ({"to": "2026-03-01T00:00:00Z"}, "to"),
        ({"from": "2026-03-31", "to": "2026-03-01"}, "from"),
        ({"from": "2025-01-01", "to": "2026-03-01"}, "from"),
        ({"from": "0001-01-01", "to": "0001-01-02"}, "from"),
        ({"from": "9999-12-31", "to": "9999-12-31"}, "from"),
        ({"group_by": "colour"}, "group_by"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": "../../etc/passwd"}, "time_zone"),
        ({"time_zone": "localtime"}, "time_zone"),
        ({"format": "xml"}, "format"),
        ({"limit": "0"}, "limit"),
        ({"group_by": "conversation", "cursor": "nonsense"}, "cursor"),
        ({"groupby": "model"}, "groupby"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_named(usage, query, param):
    response = usage(**query)
    assert response.status_code == 422
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", param)
    assert param in error["details"]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@pytest.mark.parametrize("rolls_up", [False, True])
def test_the_page_reads_days_and_models_at_once_and_finds_the_same(user, zone, rolls_up):
    for number in range(12):
        make_record(user, NOON + timedelta(hours=number * 7), model=f"model-{number % 3}", cost=f"0.{number + 1}")
    if rolls_up:
        roll_up(NOON.date(), NOON.date() + timedelta(days=2))
    period = Period.between(date(2026, 3, 1), date(2026, 3, 31), ZoneInfo(zone))
    days, models = usage_reports.by_day_and_by_model(user.pk, period)
    assert days == usage_reports.by_day(user.pk, period)
    assert models == usage_reports.by_model(user.pk, period)


def test_a_year_with_its_leap_day_can_be_asked_for(usage):
    assert usage(**{"from": "2024-01-01", "to": "2024-12-31"}).status_code == 200


def test_a_key_that_may_only_chat_does_not_see_it(client, user):
    assert client.get("/v1/usage", headers=bearer(make_key(user, ["chat"]))).status_code == 403


@pytest.mark.parametrize("as_asked", [{"format": "csv"}, {}])
def test_usage_comes_as_a_table_too(client, user, as_asked):
    make_record(user, NOON, cost="0.00000125")
    headers = bearer(make_key(user)) | ({} if as_asked else {"Accept": "text/csv"})
    query = {"from": "2026-03-01", "to": "2026-03-31", **as_asked}
    response = client.get("/v1/usage", query, headers=headers)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "usage-by-day-2026-03-01-2026-03-31.csv" in response["Content-Disposition"]
    assert list(csv.reader(io.StringIO(response.content.decode()))) == [
        ["day", "in", "cached", "out", "cost", "answers"],
        ["2026-03-04", "10", "4", "5", "0.00000125", "1"],
    ]


def test_the_table_of_conversations_has_all_of_them(usage, user):
    for _ in range(120):
        make_record(user, NOON, conversation_id=new_id())
    assert len(usage(group_by="conversation", format="csv").content.splitlines()) == 121


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\uff1d1+1", "\uff20SUM(A1)"])
def test_no_cell_of_the_table_is_a_formula(usage, user, name):
    make_record(user, NOON, model=name)
    [_, [cell, *_]] = csv.reader(io.StringIO(usage(group_by="model", format="csv").content.decode(), newline=""))
    assert cell == f"'{name}"


def test_json_is_what_a_browser_or_any_other_accept_gets(client, user):
    for accept in ("*/*", "application/json", "text/html", "application/json, text/csv;q=0.5"):
        headers = bearer(make_key(user)) | {"Accept": accept}
        assert client.get("/v1/usage", headers=headers)["Content-Type"] == "application/json"


def test_costs_are_sums_to_the_last_digit(usage, user):
    for _ in range(3):
        make_record(user, NOON, cost="1234567.000000000001")
    assert Decimal(usage().json()["totals"]["cost"]) == Decimal("3703701.000000000003")
