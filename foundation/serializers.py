"""Serializers that take exactly what is documented."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import translation
from rest_framework import serializers

from foundation.text import is_storable

_LARGEST_INTEGER = 2**63 - 1
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know, so that a typing error never passes silently."""

    default_error_messages = {"invalid": "This must be a JSON object."}

    def run_validation(self, data: Any = serializers.empty) -> Any:
        # The API speaks one language; the framework would translate its sentences, and only its own.
        with translation.override("en"):
            return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(name) for name in data if name not in self.fields]
            if unknown:
                raise serializers.ValidationError({name: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """Text that can be stored as it is: a JSON string, untrimmed, without NUL and lone surrogates."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("This must be a string.")
        if not is_storable(data):
            raise serializers.ValidationError("This contains a NUL or a lone surrogate; remove it.")
        return super().to_internal_value(data)


class WholeNumberField(serializers.IntegerField):
    """A JSON number without a fraction that fits 64 bits; no string that looks like one."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"max_value": _LARGEST_INTEGER, **kwargs})

    def to_internal_value(self, data: Any) -> int:
        is_whole = isinstance(data, int) or (isinstance(data, float) and data.is_integer())
        if isinstance(data, bool) or not is_whole:
            raise serializers.ValidationError("This must be a whole number.")
        return int(data)


class NumberField(serializers.FloatField):
    """A JSON number; no string that looks like one."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("This must be a number.")
        return float(data)


class TruthField(serializers.BooleanField):
    """JSON's `true` or `false`; nothing that only resembles them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("This must be true or false.")
        return data


class IdField(serializers.UUIDField):
    """An id, spelled as it was given out: one thing has one name."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not _ID.fullmatch(data):
            raise serializers.ValidationError("This must be an id, spelled as it was given out.")
        return UUID(data)


class TimeField(serializers.DateTimeField):
    """A time as RFC 3339 writes it, with its offset from UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not _TIME.fullmatch(value.upper()):
            raise serializers.ValidationError("This must be a time as in 2040-01-31T12:00:00Z (RFC 3339).")
        return super().to_internal_value(value.upper())
