"""`/v1/memories`: what is remembered of the caller."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import queries
from conversations.api.conversations import user_of
from conversations.api.memory_serializers import (
    ChangedMemorySerializer,
    MemoryPageSerializer,
    MemorySerializer,
    NewMemorySerializer,
)
from conversations.services import memories
from foundation.pages import PAGE_PARAMETERS, limit_of


class MemoriesView(APIView):
    """The caller's memories, and what models propose to remember."""

    required_scope = {"GET": "read", "POST": "write"}

    @extend_schema(
        operation_id="list_memories", tags=["Memories"], parameters=PAGE_PARAMETERS, responses=MemoryPageSerializer
    )
    def get(self, request: Request) -> Response:
        """List the memories and proposals, newest first."""
        query = request.query_params
        page = queries.recent_memories(user_of(request).pk, cursor=query.get("cursor"), limit=limit_of(query))
        return Response({"data": MemorySerializer(page.items, many=True).data, "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="create_memory",
        tags=["Memories"],
        request=NewMemorySerializer,
        responses={201: MemorySerializer, 200: MemorySerializer},
    )
    def post(self, request: Request) -> Response:
        """Remember something. What is remembered already, whatever its case, is answered with 200."""
        asked = NewMemorySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        kept = memories.create(user=user_of(request), **asked.validated_data)
        made = status.HTTP_201_CREATED if kept.is_new else status.HTTP_200_OK
        return Response(MemorySerializer(kept.memory).data, status=made)


class MemoryView(APIView):
    """One memory of the caller's."""

    required_scope = {"PATCH": "write", "DELETE": "write"}

    @extend_schema(
        operation_id="change_memory", tags=["Memories"], request=ChangedMemorySerializer, responses=MemorySerializer
    )
    def patch(self, request: Request, memory_id: UUID) -> Response:
        """Change what is named, accept a proposal, or say that the memory still holds."""
        queries.memory_of(user_of(request).pk, memory_id)
        asked = ChangedMemorySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        changed = memories.change(user=user_of(request), memory_id=memory_id, changes=dict(asked.validated_data))
        return Response(MemorySerializer(changed).data)

    @extend_schema(operation_id="delete_memory", tags=["Memories"], responses={204: None})
    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Forget it, from the next prompt on; a proposal is declined."""
        memories.delete(user=user_of(request), memory_id=memory_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
