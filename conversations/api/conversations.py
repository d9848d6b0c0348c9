"""`/v1/conversations`: making, listing, changing and deleting them, and reading their messages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from conversations import queries
from conversations.api.conversation_serializers import (
    ChangedConversationSerializer,
    ConversationPageSerializer,
    ConversationSerializer,
    ForkSerializer,
    NewConversationSerializer,
)
from conversations.api.parameters import choice_of
from conversations.api.serializers import MessagePageSerializer, MessageSerializer
from conversations.costs import gauges_of
from conversations.models import Conversation
from conversations.models_on_offer import window_tokens
from conversations.services import conversations, forking
from foundation.pages import PAGE_PARAMETERS, limit_of


def user_of(request: Request) -> User:
    """Return the caller's account."""
    assert isinstance(request.user, User)
    return request.user


def _shown(conversation: Conversation) -> dict[str, Any]:
    return _all_shown([conversation])[0]


def _all_shown(found: Sequence[Conversation]) -> list[dict[str, Any]]:
    shared = {"gauges": gauges_of(each.pk for each in found), "window_tokens": window_tokens()}
    return list(ConversationSerializer(found, many=True, context=shared).data)


class ConversationsView(APIView):
    """The caller's conversations."""

    required_scope = {"GET": "read", "POST": "write"}

    @extend_schema(
        operation_id="list_conversations",
        tags=["Conversations"],
        parameters=[
            *PAGE_PARAMETERS,
            OpenApiParameter("archived", bool, default=False, description="Only archived ones, or only others."),
        ],
        responses=ConversationPageSerializer,
    )
    def get(self, request: Request) -> Response:
        """List the conversations, newest change first."""
        page = queries.recent_conversations(
            user_of(request).pk,
            cursor=request.query_params.get("cursor"),
            limit=limit_of(request.query_params),
            archived=choice_of(request, "archived", ("false", "true")) == "true",
        )
        return Response({"data": _all_shown(page.items), "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="create_conversation",
        tags=["Conversations"],
        request=NewConversationSerializer,
        responses={201: ConversationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make an empty conversation."""
        asked = NewConversationSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = conversations.create(user=user_of(request), **asked.validated_data)
        return Response(_shown(made), status=status.HTTP_201_CREATED)


class ConversationView(APIView):
    """One conversation of the caller's."""

    required_scope = {"GET": "read", "PATCH": "write", "DELETE": "write"}

    @extend_schema(operation_id="get_conversation", tags=["Conversations"], responses=ConversationSerializer)
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """Return the conversation."""
        return Response(_shown(queries.conversation_of(user_of(request).pk, conversation_id)))

    @extend_schema(
        operation_id="change_conversation",
        tags=["Conversations"],
        request=ChangedConversationSerializer,
        responses=ConversationSerializer,
    )
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        """Change what is named; whatever is left out stays."""
        queries.conversation_of(user_of(request).pk, conversation_id)
        asked = ChangedConversationSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        changed = conversations.change(
            user=user_of(request), conversation_id=conversation_id, changes=dict(asked.validated_data)
        )
        return Response(_shown(changed))

    @extend_schema(operation_id="delete_conversation", tags=["Conversations"], responses={204: None})
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """Delete the conversation with all that belongs to it."""
        conversations.delete(user=user_of(request), conversation_id=conversation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ForkView(APIView):
    """A copy of one conversation of the caller's."""

    scope = "write"

    @extend_schema(
        operation_id="fork_conversation",
        tags=["Conversations"],
        request=ForkSerializer,
        responses={201: ConversationSerializer},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        """Copy the conversation up to a message into a new one, which goes its own way from there.

        The copies have ids of their own. What was used for the originals is not counted again.
        """
        asked = ForkSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = forking.fork(
            user=user_of(request),
            conversation_id=conversation_id,
            message_id=asked.validated_data.get("message_id"),
        )
        return Response(_shown(made), status=status.HTTP_201_CREATED)


class MessagesView(APIView):
    """The messages of one conversation; sending one is `conversations.api.replies`."""

    required_scope = {"GET": "read"}

    @extend_schema(
        operation_id="list_messages",
        tags=["Messages"],
        parameters=[*PAGE_PARAMETERS, OpenApiParameter("branch", str, enum=["active", "all"], default="active")],
        responses=MessagePageSerializer,
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """List the messages, oldest first: of the active branch, or of every branch."""
        page = queries.page_of_messages(
            queries.conversation_of(user_of(request).pk, conversation_id),
            cursor=request.query_params.get("cursor"),
            limit=limit_of(request.query_params),
            every_branch=choice_of(request, "branch", ("active", "all")) == "all",
        )
        return Response({"data": MessageSerializer(page.items, many=True).data, "next_cursor": page.next_cursor})
