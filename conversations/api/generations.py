"""`/v1/generations`: how an answer is coming along, its stream, and stopping it; and `/v1/models`."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers, status
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import quotas
from conversations import queries
from conversations.api.conversations import user_of
from conversations.api.parameters import position_of
from conversations.api.serializers import GenerationSerializer
from conversations.models_on_offer import models_on_offer
from conversations.services import generations
from conversations.streaming.follow import Limits
from conversations.streaming.snapshot import snapshot_for
from conversations.streaming.sse import stream_response
from foundation.database import give_connection_back


class EitherWay(BaseContentNegotiation):
    """An event stream asked for with any `Accept` is given; its errors are JSON."""

    def select_parser(self, request: Request, parsers: list[object]) -> object:  # type: ignore[override]
        return next((parser for parser in parsers if request.content_type.startswith("application/json")), None)

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: list[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], JSONRenderer.media_type or "application/json"


class GenerationView(APIView):
    """One generation of the caller's."""

    scope = "read"

    @extend_schema(operation_id="get_generation", tags=["Generations"], responses=GenerationSerializer)
    def get(self, request: Request, generation_id: UUID) -> Response:
        """Return status, timings and usage, and the message."""
        return Response(GenerationSerializer(queries.generation_of(user_of(request).pk, generation_id)).data)


class GenerationStreamView(APIView):
    """The events of one generation of the caller's."""

    scope = "read"
    content_negotiation_class = EitherWay

    @extend_schema(
        operation_id="stream_generation",
        tags=["Generations"],
        parameters=[
            OpenApiParameter("after", int, description="The id of the last event that the client has."),
            OpenApiParameter(
                "Last-Event-ID", int, OpenApiParameter.HEADER, description="The same, as browsers send it."
            ),
        ],
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
    )
    def get(self, request: Request, generation_id: UUID) -> HttpResponseBase:
        """Stream every event after the given one, once and in order, until `done`."""
        user = user_of(request)
        after = position_of(request)
        snapshot = snapshot_for(user.pk, generation_id)
        allowance = quotas.peek(user.pk, user.tier)
        give_connection_back()
        return stream_response(snapshot, after=after, limits=Limits(requests_remaining=allowance.remaining))


class CancelGenerationView(APIView):
    """Stopping one generation of the caller's."""

    scope = "chat"

    @extend_schema(operation_id="cancel_generation", tags=["Generations"], request=None, responses={204: None})
    def post(self, request: Request, generation_id: UUID) -> Response:
        """Stop the answer; what was written is kept. One that has ended stays as it is."""
        generations.cancel(user=user_of(request), generation_id=generation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ModelsView(APIView):
    """The models that the caller may choose."""

    scope = "read"

    @extend_schema(
        operation_id="list_models",
        tags=["Models"],
        responses=inline_serializer(
            "Models",
            {
                "object": serializers.CharField(),
                "data": inline_serializer(
                    "Model",
                    {
                        "id": serializers.CharField(),
                        "object": serializers.CharField(),
                        "created": serializers.IntegerField(),
                        "owned_by": serializers.CharField(),
                        "tier": serializers.CharField(),
                        "context_size": serializers.IntegerField(allow_null=True),
                        "is_default": serializers.BooleanField(),
                        "is_ready": serializers.BooleanField(),
                    },
                    many=True,
                ),
            },
        ),
    )
    def get(self, request: Request) -> Response:
        """List the models in OpenAI's shape, with the caller's tier and the size of each model's window in tokens."""
        tier = user_of(request).tier_id
        data = [
            {
                "id": model.alias,
                "object": "model",
                "created": 0,
                "owned_by": "organization",
                "tier": tier,
                "context_size": model.context_tokens,
                "is_default": model.is_default,
                "is_ready": model.is_ready,
            }
            for model in models_on_offer()
        ]
        return Response({"object": "list", "data": data})
