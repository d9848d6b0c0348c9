"""The shapes of conversations, as `docs/api.md` has them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from conversations.costs import Gauge
from conversations.models import Conversation
from conversations.services.conversations import MOST_INSTRUCTION_CHARACTERS, MOST_TITLE_CHARACTERS
from foundation.serializers import IdField, StrictSerializer, TextField, TruthField
from inference.catalog import AUTO


class NewConversationSerializer(StrictSerializer):
    """The conversation to be made."""

    title = TextField(max_length=MOST_TITLE_CHARACTERS, allow_blank=True, default="")
    model = TextField(max_length=100, allow_blank=True, default="")
    instructions = TextField(max_length=MOST_INSTRUCTION_CHARACTERS, allow_blank=True, default="")
    temporary = TruthField(
        default=False, help_text="Not listed, without memories, and deleted a while after its last message."
    )


class ChangedConversationSerializer(StrictSerializer):
    """What is to change; whatever is left out stays."""

    title = TextField(max_length=MOST_TITLE_CHARACTERS, allow_blank=True, required=False)
    model = TextField(max_length=100, allow_blank=True, required=False)
    instructions = TextField(max_length=MOST_INSTRUCTION_CHARACTERS, allow_blank=True, required=False)
    pinned = TruthField(required=False)
    archived = TruthField(required=False)
    active_message_id = IdField(required=False, allow_null=True, help_text="The last message of the shown branch.")


class ForkSerializer(StrictSerializer):
    """Which part to copy."""

    message_id = IdField(
        required=False, allow_null=True, help_text="The last message to copy; left out, the end of the shown branch."
    )


class ContextSerializer(serializers.Serializer[Any]):
    """How full the model's window is, in tokens."""

    used = serializers.IntegerField(help_text="What the shown branch's last prompt and answer have.")
    limit = serializers.IntegerField(allow_null=True)
    summarised = serializers.BooleanField(help_text="Whether a summary stood for older messages in that prompt.")


def gauge_of(gauge: Gauge, limit: int | None) -> dict[str, Any]:
    """Return the gauge as it is shown."""
    return {"used": gauge.used, "limit": limit, "summarised": gauge.is_summarised}


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    """A conversation. The serializer's context has `gauges` by conversation, and `window_tokens` by a model's alias."""

    conversation_id = serializers.UUIDField(source="pk", read_only=True)
    model = serializers.SerializerMethodField(help_text="A model's name, or `auto`.")
    active_message_id = serializers.UUIDField(read_only=True, allow_null=True)
    expires_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="When a temporary conversation is deleted if nothing more is said."
    )
    context = serializers.SerializerMethodField()  # type: ignore[assignment]

    class Meta:
        model = Conversation
        fields = (
            "conversation_id",
            "title",
            "model",
            "instructions",
            "pinned",
            "archived",
            "temporary",
            "active_message_id",
            "context",
            "created_at",
            "updated_at",
            "expires_at",
        )

    def get_model(self, conversation: Conversation) -> str:
        return conversation.model or AUTO

    @extend_schema_field(ContextSerializer)
    def get_context(self, conversation: Conversation) -> dict[str, Any]:
        shared: dict[str, Any] = self.context  # type: ignore[assignment]
        return gauge_of(shared["gauges"][conversation.pk], shared["window_tokens"](conversation.model))


class ConversationPageSerializer(serializers.Serializer[Any]):
    """A page of conversations, newest change first."""

    data = ConversationSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)
