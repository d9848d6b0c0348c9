"""The page of usage, and what is told of the limits."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from accounts.limits_told import spoken
from accounts.models import TokenBudget, User
from accounts.templatetags.usage import money
from conversations.models import Conversation
from foundation.ids import new_id
from tests.accounts.factories import make_tier, make_user, signed_in_as
from tests.accounts.usage.records import make_record

pytestmark = pytest.mark.django_db
MARCH = {"from": "2026-03-01", "to": "2026-03-31"}
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def user():
    return make_user(time_zone="Europe/Paris")


@pytest.fixture
def browser(user):
    return signed_in_as(user)


def words(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.text))


def test_it_shows_what_was_used_by_day_model_and_conversation(browser, user):
    conversation = Conversation.objects.create(user=user, title="Dinner <for> six")
    make_record(user, NOON, model="large", tokens=(1200, 200, 34), cost="0.5", conversation_id=conversation.pk)
    make_record(user, NOON, conversation_id=new_id())
    make_record(user, NOON, conversation_id=None)
    response = browser.get("/account/usage", MARCH)
    assert f'href="/c/{conversation.pk}" dir="auto">Dinner &lt;for&gt; six</a>' in response.text
    for sentence in ("4 Mar 2026", "1,220", f"{settings.CURRENCY} 0.50", "A deleted conversation", "Outside of"):
        assert sentence in words(response)


def test_days_are_those_of_the_users_zone(browser, user):
    make_record(user, datetime(2026, 3, 4, 23, 30, tzinfo=UTC))
    assert "5 Mar 2026" in words(browser.get("/account/usage", MARCH))


def test_without_any_usage_it_says_so(browser):
    assert words(browser.get("/account/usage")).count("Nothing was used in these days.") == 2


def test_another_users_titles_and_usage_are_not_shown(browser):
    stranger = make_user()
    foreign = Conversation.objects.create(user=stranger, title="Secret")
    make_record(stranger, NOON, conversation_id=foreign.pk)
    response = browser.get("/account/usage", MARCH)
    assert "Secret" not in response.text
    assert "4 Mar 2026" not in response.text


@pytest.mark.parametrize(
    "query", [{"from": "soon"}, {"from": "2026-03-02", "to": "2026-03-01"}, {"from": "1999-01-01"}]
)
def test_a_range_that_is_none_is_explained_and_the_last_days_are_shown(browser, user, query):
    make_record(user, datetime.now(UTC))
    response = browser.get("/account/usage", query)
    assert response.status_code == 200
    assert 'role="alert"' in response.text
    assert "small" in response.text


def test_nobody_else_sees_it(client):
    for path in ("/account/usage", "/account/usage.csv", "/account/limits"):
        assert client.get(path).status_code == 302


def test_the_page_has_no_inline_styles(browser, user):
    make_record(user, NOON)
    assert "style=" not in browser.get("/account/usage", MARCH).text


def test_the_table_of_conversations_names_them_and_no_title_is_a_formula(browser, user):
    conversation = Conversation.objects.create(user=user, title='=HYPERLINK("https://example.org")')
    make_record(user, NOON, conversation_id=conversation.pk)
    response = browser.get("/account/usage.csv", {"group_by": "conversation", **MARCH})
    [head, row] = csv.reader(io.StringIO(response.text))
    assert head[-1] == "title"
    assert row == [str(conversation.pk), "10", "4", "5", "0", "1", '\'=HYPERLINK("https://example.org")']


def test_a_table_that_there_is_not_is_refused(browser):
    assert browser.get("/account/usage.csv", {"group_by": "colour"}).status_code == 422
    assert browser.get("/account/usage.csv", {"from": "soon"}).status_code == 422


def test_the_browsers_time_zone_is_kept_once(browser, user):
    User.objects.update(time_zone="")
    for name in ("Mars/Olympus", "Asia/Tokyo", "Europe/Rome"):
        assert browser.post("/account/time-zone", {"time_zone": name, "suggested": "1"}).status_code == 204
    user.refresh_from_db()
    assert user.time_zone == "Asia/Tokyo"


def test_a_time_zone_is_chosen_on_the_page(browser, user):
    assert browser.post("/account/time-zone", {"time_zone": "Asia/Tokyo"}).status_code == 302
    user.refresh_from_db()
    assert user.time_zone == "Asia/Tokyo"
    assert browser.post("/account/time-zone", {"time_zone": "Mars/Olympus"}).status_code == 422


def test_a_foreign_page_cannot_choose_it(user):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user)
    assert browser.post("/account/time-zone", {"time_zone": "Asia/Tokyo"}).status_code == 403


def test_the_chat_suggests_a_time_zone_only_while_there_is_none(browser):
    assert "data-time-zone-url" not in browser.get("/").text
    User.objects.update(time_zone="")
    assert "data-time-zone-url" in browser.get("/").text


def test_little_that_is_left_is_told_above_the_composer_and_plenty_is_not(browser, user):
    assert "left" not in words(browser.get("/account/limits"))
    today = datetime.now(UTC).date()
    TokenBudget.objects.create(user=user, day=today, used=79_999)
    assert "left" not in words(browser.get("/account/limits"))
    TokenBudget.objects.update(used=80_000)
    warning = words(browser.get("/account/limits"))
    assert "You have 20,000 tokens left today. All are there again " in warning
    assert "20,000 tokens left today" in words(browser.get("/"))
    limits = browser.get("/v1/limits").json()["data"]
    assert [each["remaining"] for each in limits if each["name"] == "tokens_per_day"] == [20_000]


def test_what_is_used_up_is_told_with_the_time_at_which_there_is_more(browser, user):
    TokenBudget.objects.create(user=user, day=datetime.now(UTC).date(), used=100_000)
    response = browser.get("/account/limits")
    assert "You have no tokens left today." in words(response)
    assert re.search(r'data-stale-seconds="\d+"', response.text)


def test_a_refusal_on_a_page_says_in_the_users_time_when_to_come_again(browser, user):
    User.objects.filter(pk=user.pk).update(tier=make_tier(requests=1))
    fragment = {"X-Fragment": "1"}
    assert browser.post("/c/new/messages", {"content": "One"}, headers=fragment).status_code == 200
    refused = browser.post("/c/new/messages", {"content": "Two"}, headers=fragment)
    assert refused.status_code == 429
    assert re.search(r"The next can be sent (at|tomorrow at) \d\d:\d\d\.", words(refused))
    assert "You have no messages left." in words(browser.get("/account/limits"))
    page = browser.post("/c/new/messages", {"content": "Two, without scripts"})
    assert re.search(r"The next can be sent (at|tomorrow at) \d\d:\d\d\.", words(page))
    assert "Two, without scripts" in page.text


@pytest.mark.parametrize(
    ("zone", "at", "text"),
    [
        ("Europe/Paris", "2026-03-28T20:00:00Z", "at 21:00"),
        ("Europe/Paris", "2026-03-29T00:00:00Z", "tomorrow at 01:00"),
        ("Europe/Paris", "2026-03-29T01:00:00Z", "tomorrow at 03:00"),  # its clocks skip two
        ("", "2026-03-29T00:00:00Z", "tomorrow at 00:00"),
        ("Asia/Tokyo", "2026-03-28T20:00:00Z", "at 05:00"),
        ("Gone/Away", "2026-03-28T20:00:00Z", "at 20:00"),
        ("Europe/Paris", "2026-03-28T19:59:00.000001Z", "at 21:00"),
        ("Europe/Paris", "2026-04-02T22:30:00Z", "on 3 April at 00:30"),
    ],
)
def test_times_are_spoken_in_the_users_zone(zone, at, text):
    with time_machine.travel(datetime(2026, 3, 28, 19, tzinfo=UTC), tick=False):
        assert spoken(datetime.fromisoformat(at), User(time_zone=zone)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0.00"), ("12.345", "12.35"), ("1234.5", "1,234.50"), ("0.5", "0.50"), ("0.00123456", "0.0012")],
)
def test_amounts_of_money_are_shown_to_the_cent_and_small_ones_by_two_digits(amount, text):
    assert money(Decimal(amount)) == f"{settings.CURRENCY} {text}"


def test_the_longest_range_has_a_bar_for_each_day(browser, user):
    for days in range(0, 365, 7):
        make_record(user, datetime.now(UTC) - timedelta(days=days))
    today = datetime.now(UTC).date()
    response = browser.get("/account/usage", {"from": str(today - timedelta(days=364)), "to": str(today)})
    assert response.text.count('class="usage-written"') == 53
