"""`…/context`: what one answer's model saw, and what a conversation costs."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import queries
from conversations.api.conversations import user_of
from conversations.api.serializers import ContextSerializer, UsageSerializer, gauge_of
from conversations.costs import Tokens, Turn, gauges_of, next_turn_of, total_of, turns_of
from conversations.models import Message
from conversations.models_on_offer import window_tokens
from conversations.seen_context import SeenContext, seen_context
from foundation.pages import PAGE_PARAMETERS, limit_of


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
    created_at = serializers.DateTimeField(help_text="When it ended.")


class TurnPageSerializer(serializers.Serializer[Any]):
    """A page of turns, oldest first."""

    data = TurnSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)


class ConversationContextSerializer(ContextSerializer):
    """How full the window is, and what the conversation costs, in tokens."""

    conversation_id = serializers.UUIDField()
    total = UsageSerializer(help_text="What all answers used, on every branch.")
    next_turn = UsageSerializer(
        help_text=(
            "What the next turn will use if its question and answer are as long as the average: it reads `used` again, "
            "which is cached by then, and the question."
        )
    )
    turns = TurnPageSerializer()


class GenerationContextView(APIView):
    """What the model of one of the caller's answers saw."""

    scope = "read"

    @extend_schema(operation_id="get_generation_context", tags=["Generations"], responses=GenerationContextSerializer)
    def get(self, request: Request, generation_id: UUID) -> Response:
        """Return the parts of the prompt with their tokens: instructions, memories, summary, messages, passages."""
        generation = queries.generation_of(user_of(request).pk, generation_id)
        seen = seen_context(generation)
        shown = {
            "generation_id": generation.pk,
            "conversation_id": generation.conversation_id,
            "context": _seen(seen) if seen else None,
        }
        return Response(GenerationContextSerializer(shown).data)


class ConversationContextView(APIView):
    """What one of the caller's conversations costs."""

    scope = "read"

    @extend_schema(
        operation_id="get_conversation_context",
        tags=["Conversations"],
        parameters=PAGE_PARAMETERS,
        responses=ConversationContextSerializer,
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """Return the gauge, the total, the projected next turn, and a page of what each turn used."""
        conversation = queries.conversation_of(user_of(request).pk, conversation_id)
        gauge = gauges_of([conversation.pk])[conversation.pk]
        limit = window_tokens()(conversation.model)
        page = turns_of(conversation, cursor=request.query_params.get("cursor"), limit=limit_of(request.query_params))
        shown = {
            "conversation_id": conversation.pk,
            **gauge_of(gauge, limit),
            "total": _usage(total_of(conversation)),
            "next_turn": _usage(next_turn_of(conversation, gauge, limit=limit)),
            "turns": {"data": [_turn(turn) for turn in page.items], "next_cursor": page.next_cursor},
        }
        return Response(ConversationContextSerializer(shown).data)


def _usage(tokens: Tokens) -> dict[str, int]:
    return {"in": tokens.tokens_in, "cached": tokens.tokens_cached, "out": tokens.tokens_out}


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "message_id": turn.message_id,
        "model": turn.model,
        "usage": _usage(turn.usage),
        "accumulated": _usage(turn.accumulated),
        "created_at": turn.created_at,
    }


def _seen(seen: SeenContext) -> dict[str, Any]:
    record = seen.record
    return {
        "tokenizer": record.tokenizer,
        "exact": record.is_exact,
        "window": record.window_tokens,
        "budget": record.budget_tokens,
        "total": record.total_tokens,
        "site_instructions": {"tokens": record.site_instructions_tokens},
        "user_instructions": {"tokens": record.user_instructions_tokens, "text": seen.user_instructions},
        "instructions": {"tokens": record.instructions_tokens, "text": seen.instructions},
        "memories": [
            {"memory_id": each.memory_id, "tokens": each.tokens, "text": each.text, "deleted": each.is_deleted}
            for each in seen.memories
        ],
        "summary": seen.summary,
        "kept": {
            "count": record.messages_kept,
            "tokens": record.messages_kept_tokens,
            "messages": seen.messages,
        },
        "dropped": {
            "count": record.messages_dropped,
            "first_message_id": seen.first_dropped,
            "last_message_id": seen.last_dropped,
        },
        "passages": {"kept": record.passages_kept, "dropped": record.passages_dropped},
    }
