"""What `/v1/limits` gives."""

from typing import Any

from rest_framework import serializers

NAMES = ("requests", "tokens_per_minute", "tokens_per_day", "concurrent_generations")


class LimitSerializer(serializers.Serializer[Any]):
    """One limit of the caller's tier, and where the caller stands."""

    name = serializers.ChoiceField(NAMES, help_text="What is counted.")
    model = serializers.CharField(
        allow_null=True, help_text="The model whose own limit it is; null for one that all others share."
    )
    limit = serializers.IntegerField(help_text="How many are allowed.")
    used = serializers.IntegerField(help_text="How many are taken; tokens also by what is kept for answers under way.")
    remaining = serializers.IntegerField()
    window_seconds = serializers.IntegerField(
        allow_null=True, help_text="Within how long; null where it is not time that makes room. Days are those of UTC."
    )
    resets_at = serializers.DateTimeField(
        allow_null=True, help_text="When there is more room: the oldest leaves the window, or the day is over."
    )


class LimitsSerializer(serializers.Serializer[Any]):
    """Every limit of the caller's tier."""

    tier = serializers.CharField()
    data = LimitSerializer(many=True)  # type: ignore[assignment]
