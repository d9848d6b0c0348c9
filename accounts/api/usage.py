"""`/v1/usage`: what the caller used."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import usage_reports
from accounts.api.usage_serializers import UsagePageSerializer, UsageQuerySerializer
from accounts.models import User
from accounts.pricing import exact
from accounts.time_zones import zone_named
from accounts.usage_csv import CSV_TYPE, usage_table
from accounts.usage_periods import Period
from accounts.usage_reports import GROUPS, Row, Sums
from foundation.file_answers import file_to_keep
from foundation.pages import Cursor, Page, page_of

_CSV_MEDIA = "text/csv"
_CSV = OpenApiResponse({"type": "string"}, description="With `format=csv` or `Accept: text/csv`: all rows as a table.")


class UsageView(APIView):
    """What the caller used."""

    scope = "read"

    @extend_schema(
        operation_id="list_usage",
        tags=["Account"],
        parameters=[UsageQuerySerializer],
        responses={(200, "application/json"): UsagePageSerializer, (200, _CSV_MEDIA): _CSV},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List the tokens and their cost, by day, model or conversation; also what was used a moment ago."""
        user = request.user
        assert isinstance(user, User)
        query = UsageQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        period = Period.between(asked.get("from"), asked.get("to"), zone_named(asked["time_zone"]))
        if _wants_csv(request, asked):
            made = usage_table(user.pk, period, asked["group_by"])
            return file_to_keep(made.text, name=made.file_name, content_type=CSV_TYPE)
        return Response(_page(user.pk, period, asked))


def _wants_csv(request: Request, asked: dict[str, Any]) -> bool:
    if "format" in asked:
        return bool(asked["format"] == "csv")
    return request._request.get_preferred_type(["application/json", _CSV_MEDIA]) == _CSV_MEDIA


def _page(user_id: UUID, period: Period, asked: dict[str, Any]) -> dict[str, Any]:
    group_by = asked["group_by"]
    if group_by == "conversation":
        page = _conversations(user_id, period, asked)
        totals = usage_reports.total_of(usage_reports.by_model(user_id, period))
    else:
        page = Page(usage_reports.all_rows(user_id, period, group_by), None)
        totals = usage_reports.total_of(page.items)
    return {
        "data": [{GROUPS[group_by]: row.key, **_shown(row.sums)} for row in page.items],
        "next_cursor": page.next_cursor,
        "totals": _shown(totals),
        "currency": settings.CURRENCY,
        "from": period.first,
        "to": period.last,
        "group_by": group_by,
        "time_zone": period.zone.key,
    }


def _conversations(user_id: UUID, period: Period, asked: dict[str, Any]) -> Page[Row[UUID | None]]:
    after = Cursor.read(asked["cursor"]).last_id if "cursor" in asked else None
    rows = usage_reports.by_conversation(user_id, period, after=after, limit=asked["limit"] + 1)
    return page_of(rows, asked["limit"], _cursor_after)


def _cursor_after(row: Row[UUID | None]) -> Cursor:
    assert row.key is not None  # what was used outside of conversations comes last
    return Cursor(row.key)


def _shown(sums: Sums) -> dict[str, Any]:
    return {
        "in": sums.tokens_in,
        "cached": sums.tokens_cached,
        "out": sums.tokens_out,
        "cost": exact(sums.cost),
        "answers": sums.answers,
    }
