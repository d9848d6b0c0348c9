"""What this app's addresses take and give."""

from typing import Any

from rest_framework import serializers

from accounts.models import APIKey
from accounts.models.api_key import MAX_NAME_CHARACTERS, SCOPES
from foundation.serializers import StrictSerializer, TextField, TimeField


class NewAPIKeySerializer(StrictSerializer):
    """The key to be made."""

    name = TextField(max_length=MAX_NAME_CHARACTERS, allow_blank=True, default="")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(SCOPES), allow_empty=False, max_length=len(SCOPES), help_text="What it may do."
    )
    expires_at = TimeField(allow_null=True, default=None, help_text="When it ends; left out, it does not.")


class APIKeySerializer(serializers.ModelSerializer[APIKey]):
    """A key, never its secret."""

    api_key_id = serializers.UUIDField(source="pk", read_only=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES), read_only=True)

    class Meta:
        model = APIKey
        fields = ("api_key_id", "name", "prefix", "scopes", "expires_at", "last_used_at", "created_at")
        read_only_fields = fields


class MadeAPIKeySerializer(APIKeySerializer):
    """A key that was just made, with its secret: it is told this once."""

    key = serializers.CharField(read_only=True)

    class Meta(APIKeySerializer.Meta):
        fields = (*APIKeySerializer.Meta.fields, "key")  # type: ignore[assignment]
        read_only_fields = fields  # type: ignore[assignment]


class APIKeyPageSerializer(serializers.Serializer[Any]):
    """A page of keys, newest first."""

    data = APIKeySerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)
