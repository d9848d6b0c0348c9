"""`…/context`: what one answer's model saw, and what a conversation costs."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.pricing import exact
from conversations import queries
from conversations.api.context_serializers import ConversationContextSerializer, GenerationContextSerializer
from conversations.api.conversation_serializers import gauge_of
from conversations.api.conversations import user_of
from conversations.costs import Tokens, Turn, gauges_of, next_turn_of, price_of, total_of, turns_of
from conversations.models_on_offer import window_tokens
from conversations.seen_context import SeenContext, seen_context
from foundation.pages import PAGE_PARAMETERS, limit_of


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
            "cost": exact(price_of(conversation)),
            "currency": settings.CURRENCY,
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
        "cost": exact(turn.cost),
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
