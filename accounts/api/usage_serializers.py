"""What `/v1/usage` takes and gives."""

import re
from datetime import date
from typing import Any

from rest_framework import serializers

from accounts.usage_periods import DEFAULT_DAYS, MOST_DAYS
from accounts.usage_reports import GROUPS
from foundation.pages import DEFAULT_LIMIT, MOST_LIMIT
from foundation.serializers import StrictSerializer

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class DayField(serializers.DateField):
    """A day as in 2040-01-31, and in no other spelling."""

    def to_internal_value(self, value: Any) -> date:
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            raise serializers.ValidationError("This must be a day as in 2040-01-31.")
        return super().to_internal_value(value)


class UsageQuerySerializer(StrictSerializer):
    """What is asked of `/v1/usage`."""

    locals().update(
        {"from": DayField(required=False, help_text=f"The first day; left out, {DEFAULT_DAYS} days up to the last.")}
    )
    to = DayField(required=False, help_text=f"The last day, included; left out, today. At most {MOST_DAYS} days.")
    group_by = serializers.ChoiceField(list(GROUPS), default="day")
    time_zone = serializers.CharField(
        default="UTC",
        help_text=(
            "In whose days, by its IANA name. UTC's are the ledger's: an answer is of the day on which it was asked "
            "for. In other zones it is of the day in which it ended there."
        ),
    )
    format = serializers.ChoiceField(
        ["json", "csv"], required=False, help_text="`csv`, as `Accept: text/csv` does, gets all rows as a table."
    )
    cursor = serializers.CharField(required=False, help_text="`next_cursor` of the page before.")
    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT,
        min_value=1,
        max_value=MOST_LIMIT,
        help_text="How many conversations a page may hold; days and models come all at once.",
    )


class UsageSumsSerializer(serializers.Serializer[Any]):
    """Tokens read, those of them that were cached, tokens written, what they cost, and in how many answers."""

    locals().update({"in": serializers.IntegerField()})
    cached = serializers.IntegerField()
    out = serializers.IntegerField()
    cost = serializers.CharField(help_text="An exact decimal, in `currency`.")
    answers = serializers.IntegerField()


class UsageRowSerializer(UsageSumsSerializer):
    """The sums of one group. It has the key of that group and not the others'."""

    day = serializers.DateField(required=False)
    model = serializers.CharField(required=False)
    conversation_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Null for what was used outside of conversations."
    )


class UsagePageSerializer(serializers.Serializer[Any]):
    """What was used: days oldest first, models by name, conversations newest first; only groups that used anything."""

    data = UsageRowSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)
    totals = UsageSumsSerializer(help_text="Of all groups, also those of other pages.")
    currency = serializers.CharField(help_text="The ISO 4217 code of the costs' currency.")
    locals().update({"from": serializers.DateField()})
    to = serializers.DateField()
    group_by = serializers.ChoiceField(list(GROUPS))
    time_zone = serializers.CharField()
