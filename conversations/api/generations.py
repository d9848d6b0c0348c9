"""`/v1/generations`: how an answer is coming along, its stream, and stopping it."""

from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import quotas
from accounts.authentication import caller_of
from conversations import queries
from conversations.api.conversations import user_of
from conversations.api.event_stream import EVENT_STREAM, STREAM_TYPE
from conversations.api.parameters import position_of
from conversations.api.serializers import GenerationSerializer
from conversations.services import generations
from conversations.streaming.follow import Limits
from conversations.streaming.snapshot import snapshot_for
from conversations.streaming.sse import stream_response
from foundation.database import give_connection_back


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

    @extend_schema(
        operation_id="stream_generation",
        tags=["Generations"],
        parameters=[
            OpenApiParameter("after", int, description="The id of the last event that the client has."),
            OpenApiParameter(
                "Last-Event-ID", int, OpenApiParameter.HEADER, description="The same, as browsers send it."
            ),
        ],
        responses={(200, STREAM_TYPE): EVENT_STREAM},
    )
    def get(self, request: Request, generation_id: UUID) -> HttpResponseBase:
        """Stream every event after the given one, once and in order, until `done`."""
        user = user_of(request)
        after = position_of(request)
        snapshot = snapshot_for(user.pk, generation_id)
        limits = Limits.within(quotas.peek(user, snapshot.model))
        give_connection_back()
        return stream_response(snapshot, caller_of(request), after=after, limits=limits)

    @extend_schema(exclude=True)
    def head(self, request: Request, generation_id: UUID) -> HttpResponse:
        """Answer with the stream's headers; nothing is followed."""
        queries.generation_of(user_of(request).pk, generation_id)
        return HttpResponse(content_type=STREAM_TYPE)


class CancelGenerationView(APIView):
    """Stopping one generation of the caller's."""

    scope = "chat"

    @extend_schema(operation_id="cancel_generation", tags=["Generations"], request=None, responses={204: None})
    def post(self, request: Request, generation_id: UUID) -> Response:
        """Stop the answer; what was written is kept. One that has ended stays as it is."""
        generations.cancel(user=user_of(request), generation_id=generation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
