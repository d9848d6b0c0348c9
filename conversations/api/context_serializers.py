"""The shapes of what a model saw, and of what a conversation costs."""

from typing import Any

from rest_framework import serializers

from conversations.api.conversation_serializers import ContextSerializer
from conversations.api.serializers import UsageSerializer
from conversations.models import Message


class PartSerializer(serializers.Serializer[Any]):
    """A part of the prompt whose text is the site's."""

    tokens = serializers.IntegerField()


class InstructionsPartSerializer(PartSerializer):
    """Instructions of the user's."""

    text = serializers.CharField(allow_null=True, help_text="As they are now; null where the prompt had none.")


class MemoryPartSerializer(PartSerializer):
    """A memory that was told."""

    memory_id = serializers.UUIDField()
    text = serializers.CharField(allow_null=True, help_text="As it is now; null where it has been deleted.")
    deleted = serializers.BooleanField()


class SummaryPartSerializer(PartSerializer):
    """The summary that stood for what was left out."""

    summary_id = serializers.UUIDField()
    epoch = serializers.IntegerField()
    text = serializers.CharField(allow_null=True)
    covers_up_to = serializers.UUIDField(allow_null=True, help_text="The last message that it stands for.")


class KeptMessageSerializer(serializers.Serializer[Any]):
    """A message that was in the prompt."""

    message_id = serializers.UUIDField()
    role = serializers.ChoiceField(Message.Role.choices)
    tokens = serializers.IntegerField(allow_null=True, help_text="Null where it was never counted by itself.")


class KeptSerializer(PartSerializer):
    """The messages that were in the prompt, oldest first. There are no more of them than the window holds."""

    count = serializers.IntegerField()
    messages = KeptMessageSerializer(many=True)


class DroppedSerializer(serializers.Serializer[Any]):
    """The messages that were left out."""

    count = serializers.IntegerField()
    first_message_id = serializers.UUIDField(allow_null=True)
    last_message_id = serializers.UUIDField(allow_null=True)


class PassagesSerializer(serializers.Serializer[Any]):
    """How many of the question's passages were in the prompt, and how many were left out."""

    kept = serializers.IntegerField()
    dropped = serializers.IntegerField()


class SeenContextSerializer(serializers.Serializer[Any]):
    """The parts of a prompt, in their order. Counts are upper bounds where `exact` is false."""

    tokenizer = serializers.CharField()
    exact = serializers.BooleanField()
    window = serializers.IntegerField(allow_null=True, help_text="Tokens that prompt and answer may have together.")
    budget = serializers.IntegerField(allow_null=True, help_text="Tokens that the prompt may have.")
    total = serializers.IntegerField(help_text="Tokens that the prompt had.")
    site_instructions = PartSerializer()
    user_instructions = InstructionsPartSerializer()
    instructions = InstructionsPartSerializer()
    memories = MemoryPartSerializer(many=True)
    summary = SummaryPartSerializer(allow_null=True)
    kept = KeptSerializer()
    dropped = DroppedSerializer()
    passages = PassagesSerializer()


class GenerationContextSerializer(serializers.Serializer[Any]):
    """What the model saw."""

    generation_id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    context = SeenContextSerializer(  # type: ignore[assignment]
        allow_null=True, help_text="Null where it was not kept: the answer is old, or no model has begun it."
    )


class TurnSerializer(serializers.Serializer[Any]):
    """One answer."""

    message_id = serializers.UUIDField()
    model = serializers.CharField()
    usage = UsageSerializer()
    accumulated = UsageSerializer(help_text="What all answers up to and with this one used.")
    cost = serializers.CharField(help_text="An exact decimal.")
    created_at = serializers.DateTimeField(help_text="When it ended.")


class TurnPageSerializer(serializers.Serializer[Any]):
    """A page of turns, oldest first."""

    data = TurnSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)


class ConversationContextSerializer(ContextSerializer):
    """How full the window is, and what the conversation costs, in tokens and money."""

    conversation_id = serializers.UUIDField()
    total = UsageSerializer(help_text="What all answers used, on every branch.")
    cost = serializers.CharField(help_text="What they cost: an exact decimal, in `currency`.")
    currency = serializers.CharField(help_text="The ISO 4217 code of the costs' currency.")
    next_turn = UsageSerializer(
        help_text=(
            "What the next turn will use if its question and answer are as long as the average: it reads `used` again, "
            "which is cached by then, and the question."
        )
    )
    turns = TurnPageSerializer()
