"""The shapes of messages and generations, as `docs/api.md` has them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from conversations.models import Generation, Message
from foundation.serializers import IdField, NumberField, StrictSerializer, TextField, TruthField, WholeNumberField

_MOST_STOP_SEQUENCES = 4
_MOST_DOCUMENTS = 100
_MOST_TOOLS = 100


class OptionsSerializer(StrictSerializer):
    """How to write the answer."""

    max_tokens = WholeNumberField(
        min_value=1, max_value=1_000_000, required=False, help_text="At most this many, and never more than the tier's."
    )
    temperature = NumberField(min_value=0, max_value=2, required=False)
    top_p = NumberField(min_value=0.000001, max_value=1, required=False)
    seed = WholeNumberField(min_value=0, required=False)
    stop = serializers.ListField(
        child=TextField(max_length=100),
        max_length=_MOST_STOP_SEQUENCES,
        required=False,
    )


class NewMessageSerializer(StrictSerializer):
    """What the user says. Only `content` is needed."""

    content = TextField(allow_blank=True)
    model = TextField(max_length=100, required=False, allow_null=True, help_text="A model's name, or `auto`.")
    parent_id = IdField(
        required=False,
        allow_null=True,
        help_text="The answer that this message follows; left out, the last one shown; `null`, a new first message.",
    )
    document_ids = serializers.ListField(child=IdField(), max_length=_MOST_DOCUMENTS, required=False)
    tools = serializers.ListField(child=TextField(max_length=100), max_length=_MOST_TOOLS, required=False)
    options = OptionsSerializer(required=False)
    stream = TruthField(required=False, default=True, help_text="`false` for one JSON object at the end.")
    background = TruthField(required=False, default=False, help_text="Whether to go on when nobody is attached.")

    def validate_document_ids(self, value: list[Any]) -> list[Any]:
        if value:
            raise serializers.ValidationError("There is no such document.")
        return value

    def validate_tools(self, value: list[str]) -> list[str]:
        if value:
            raise serializers.ValidationError(f"There is no tool {value[0]!r} here.")
        return value


class RegenerateSerializer(StrictSerializer):
    """How to write the other answer."""

    model = TextField(max_length=100, required=False, allow_null=True)
    stream = TruthField(required=False, default=True, help_text="`false` for one JSON object at the end.")


class ContinueSerializer(StrictSerializer):
    """How to go on. What `options` leaves out is as it was, except for the length."""

    options = OptionsSerializer(required=False)
    stream = TruthField(required=False, default=True, help_text="`false` for one JSON object at the end.")
    background = TruthField(required=False, default=False, help_text="Whether to go on when nobody is attached.")


class UsageSerializer(serializers.Serializer[Any]):
    """Tokens read, those of them that were cached, and tokens written."""

    locals().update({"in": serializers.IntegerField()})
    cached = serializers.IntegerField()
    out = serializers.IntegerField()


def usage_of(message: Message) -> dict[str, int]:
    """Return the token counts of an answer; zero for what is not known yet."""
    return {"in": message.tokens_in or 0, "cached": message.tokens_cached or 0, "out": message.tokens_out or 0}


_OBJECTS = {"type": "array", "items": {"type": "object"}}


class MessageSerializer(serializers.ModelSerializer[Message]):
    """A message of either side."""

    message_id = serializers.UUIDField(source="pk", read_only=True)
    conversation_id = serializers.UUIDField(read_only=True)
    parent_id = serializers.UUIDField(read_only=True, allow_null=True)
    finish_reason = serializers.SerializerMethodField()
    model = serializers.SerializerMethodField()
    usage = serializers.SerializerMethodField()
    attachments = serializers.SerializerMethodField()
    citations = serializers.SerializerMethodField()
    tool_calls = serializers.SerializerMethodField()
    feedback = serializers.SerializerMethodField()

    class Meta:
        model = Message
        fields = (
            "message_id",
            "conversation_id",
            "parent_id",
            "role",
            "content",
            "status",
            "finish_reason",
            "model",
            "usage",
            "attachments",
            "citations",
            "tool_calls",
            "feedback",
            "created_at",
        )

    def get_finish_reason(self, message: Message) -> str | None:
        return message.finish_reason or None

    def get_model(self, message: Message) -> str | None:
        return message.model or None

    @extend_schema_field(UsageSerializer(allow_null=True))
    def get_usage(self, message: Message) -> dict[str, int] | None:
        return usage_of(message) if message.role == Message.Role.ASSISTANT else None

    @extend_schema_field(_OBJECTS)
    def get_attachments(self, message: Message) -> list[Any]:
        return []

    @extend_schema_field(_OBJECTS)
    def get_citations(self, message: Message) -> list[Any]:
        return []

    @extend_schema_field(_OBJECTS)
    def get_tool_calls(self, message: Message) -> list[Any]:
        return []

    @extend_schema_field({"type": "object", "nullable": True})
    def get_feedback(self, message: Message) -> None:
        return None


class WhySerializer(serializers.Serializer[Any]):
    """Why an answer failed."""

    code = serializers.CharField()
    message = serializers.CharField()


class GenerationRecordSerializer(serializers.ModelSerializer[Generation]):
    """How an answer came about."""

    generation_id = serializers.UUIDField(source="pk", read_only=True)
    conversation_id = serializers.UUIDField(read_only=True)
    model_version = serializers.SerializerMethodField()
    finish_reason = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    usage = serializers.SerializerMethodField()

    class Meta:
        model = Generation
        fields = (
            "generation_id",
            "conversation_id",
            "status",
            "attempt",
            "model",
            "model_version",
            "finish_reason",
            "error",
            "usage",
            "queued_at",
            "started_at",
            "first_token_at",
            "finished_at",
        )

    def get_model_version(self, generation: Generation) -> str | None:
        return generation.model_version or None

    def get_finish_reason(self, generation: Generation) -> str | None:
        return generation.finish_reason or None

    @extend_schema_field(WhySerializer(allow_null=True))
    def get_error(self, generation: Generation) -> dict[str, str] | None:
        if not generation.error_code:
            return None
        return {"code": generation.error_code, "message": generation.error_message}

    @extend_schema_field(UsageSerializer)
    def get_usage(self, generation: Generation) -> dict[str, int]:
        return usage_of(generation.message)


class GenerationSerializer(GenerationRecordSerializer):
    """How an answer came about, and the answer."""

    message = MessageSerializer(read_only=True)

    class Meta(GenerationRecordSerializer.Meta):
        fields = (*GenerationRecordSerializer.Meta.fields, "message")  # type: ignore[assignment]


class WholeReplySerializer(MessageSerializer):
    """A finished answer, and how it came about."""

    generation = GenerationRecordSerializer(read_only=True)

    class Meta(MessageSerializer.Meta):
        fields = (*MessageSerializer.Meta.fields, "generation")  # type: ignore[assignment]


class MessagePageSerializer(serializers.Serializer[Any]):
    """A page of messages, oldest first."""

    data = MessageSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)
