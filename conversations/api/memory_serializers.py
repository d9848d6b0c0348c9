"""The shapes of memories and preferences."""

from typing import Any

from rest_framework import serializers

from conversations.models import Memory, Preference
from conversations.services.conversations import MOST_INSTRUCTION_CHARACTERS
from foundation.serializers import StrictSerializer, TextField, TimeField, TruthField


class _YesField(TruthField):
    """Only `true`: what has been confirmed cannot be taken back."""

    def to_internal_value(self, data: Any) -> bool:
        if not super().to_internal_value(data):
            raise serializers.ValidationError("This can only be true.")
        return True


class NewMemorySerializer(StrictSerializer):
    """What is to be remembered."""

    content = TextField(help_text="Kept on one line.")
    expires_at = TimeField(required=False, allow_null=True, default=None)


class ChangedMemorySerializer(StrictSerializer):
    """What is to change; whatever is left out stays."""

    content = TextField(required=False, help_text="Kept on one line.")
    enabled = TruthField(required=False, help_text="Whether models are told of it.")
    expires_at = TimeField(required=False, allow_null=True)
    confirmed = _YesField(required=False, help_text="`true` accepts a proposal; to decline one, delete it.")
    reviewed = _YesField(required=False, help_text="`true` says that it still holds.")


class MemorySerializer(serializers.ModelSerializer[Memory]):
    """A fact about the user. One without `confirmed_at` is only proposed: no model is told of it."""

    memory_id = serializers.UUIDField(source="pk", read_only=True)
    conversation_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="Where it was asked for or proposed, while that is there."
    )
    message_id = serializers.UUIDField(read_only=True, allow_null=True)
    needs_review = serializers.BooleanField(
        read_only=True, help_text="Whether nobody has confirmed or changed it for a long time."
    )

    class Meta:
        model = Memory
        fields = (
            "memory_id",
            "content",
            "origin",
            "enabled",
            "conversation_id",
            "message_id",
            "created_at",
            "updated_at",
            "confirmed_at",
            "reviewed_at",
            "expires_at",
            "needs_review",
        )
        read_only_fields = fields


class MemoryPageSerializer(serializers.Serializer[Any]):
    """A page of memories, newest first."""

    data = MemorySerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)


class ChangedPreferencesSerializer(StrictSerializer):
    """What is to change; whatever is left out stays."""

    instructions = TextField(max_length=MOST_INSTRUCTION_CHARACTERS, allow_blank=True, required=False)
    uses_memories = TruthField(required=False)


class PreferencesSerializer(serializers.ModelSerializer[Preference]):
    """What the user wants of every conversation."""

    class Meta:
        model = Preference
        fields = ("instructions", "uses_memories")
        read_only_fields = fields
