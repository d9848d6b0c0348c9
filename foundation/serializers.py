"""Serializers that take exactly what is documented."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from foundation.text import is_storable


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know, so that a typing error never passes silently."""

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
