"""The page that tells what was used, what is left, and what it cost."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts import usage_reports
from accounts.conversation_titles import titles_of
from accounts.exceptions import InvalidRequest
from accounts.limits_told import told_limits
from accounts.models import User
from accounts.time_zones import choose_time_zone, suggest_time_zone, time_zone_names, zone_of
from accounts.usage_csv import CSV_TYPE, usage_table
from accounts.usage_periods import Period
from accounts.usage_reports import GROUPS, Row, Sums
from accounts.views.access import SignedInRequest, signed_in
from accounts.views.usage_charts import day_chart, shares
from foundation.file_answers import file_to_keep

_MOST_CONVERSATIONS = 10
_RANGES = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "12 months"))


@require_safe
@signed_in
def page(request: SignedInRequest) -> HttpResponse:
    """Show the limits, and the days, models and conversations of a range of days."""
    period, refused = _period(request)
    return render(request, "settings/usage.html", _shown(request.user, period) | {"refused": refused})


@require_safe
@signed_in
def table(request: SignedInRequest) -> HttpResponse:
    """Give the same as a file for spreadsheets."""
    period, refused = _period(request)
    group_by = request.GET.get("group_by", "day")
    if refused is not None:
        raise refused
    if group_by not in GROUPS:
        raise InvalidRequest(f"Usage can be grouped by {', '.join(GROUPS)}.", param="group_by")
    made = usage_table(request.user.pk, period, group_by)
    return file_to_keep(made.text, name=made.file_name, content_type=CSV_TYPE)


@require_safe
@signed_in
def limits(request: SignedInRequest) -> HttpResponse:
    """Tell the composer's script anew of what little is left of."""
    return render(request, "_limits.html")


@require_POST
@signed_in
def time_zone(request: SignedInRequest) -> HttpResponse:
    """Keep the time zone that was chosen on the page, or that the browser suggests where none is kept."""
    name = request.POST.get("time_zone", "")
    if "suggested" in request.POST:
        suggest_time_zone(request.user, name)
        return HttpResponse(status=204)
    choose_time_zone(request.user, name)
    return redirect("usage_page")


def _period(request: SignedInRequest) -> tuple[Period, InvalidRequest | None]:
    """Return the range that is asked for, or the usual one and why."""
    zone = zone_of(request.user)
    try:
        return Period.between(_day(request.GET, "from"), _day(request.GET, "to"), zone), None
    except InvalidRequest as error:
        return Period.between(None, None, zone), error


def _day(query: QueryDict, name: str) -> date | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidRequest("A day is written as in 2040-01-31.", param=name) from None


def _shown(user: User, period: Period) -> dict[str, Any]:
    days, models = usage_reports.by_day_and_by_model(user.pk, period)
    models.sort(key=lambda row: -row.sums.tokens)
    conversations = usage_reports.largest_conversations(user.pk, period, limit=_MOST_CONVERSATIONS)
    return {
        "period": period,
        "total": usage_reports.total_of(days),
        "chart": day_chart(period, days),
        "models": shares([(row.key, "", row.sums) for row in models]),
        "conversations": shares(list(_named(user.pk, conversations))),
        "ranges": _ranges(period),
        "time_zones": time_zone_names(),
        "zone_name": period.zone.key,
        "limits": told_limits(user),
    }


def _named(user_id: UUID, rows: Iterable[Row[UUID | None]]) -> Iterable[tuple[str, str, Sums]]:
    rows = list(rows)
    titles = titles_of(user_id, [row.key for row in rows if row.key is not None])
    for row in rows:
        if row.key is None:
            yield "Outside of conversations", "", row.sums
        elif row.key in titles:
            yield titles[row.key] or "Without a title", reverse("conversation", args=[row.key]), row.sums
        else:
            yield "A deleted conversation", "", row.sums


def _ranges(period: Period) -> list[dict[str, Any]]:
    today = Period.between(None, None, period.zone).last
    starts = [(today - timedelta(days=days - 1), text) for days, text in _RANGES]
    return [
        {"from": first, "to": today, "text": text, "is_current": (period.first, period.last) == (first, today)}
        for first, text in starts
    ]
