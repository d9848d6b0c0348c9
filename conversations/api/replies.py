"""The calls that are answered by a reply: sending a message, asking for another answer, having one go on.

The reply is followed by an async view, so that Django's own handler notices at once when the client leaves. What comes
before it (authentication, limits, validation, the transaction) is a synchronous REST framework view.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts import quotas
from accounts.authentication import caller_of
from accounts.callers import Caller
from conversations import queries
from conversations.api.conversations import MessagesView, user_of
from conversations.api.event_stream import EVENT_STREAM, STREAM_TYPE
from conversations.api.serializers import (
    ContinueSerializer,
    NewMessageSerializer,
    RegenerateSerializer,
    WholeReplySerializer,
)
from conversations.exceptions import ContentTooLong, InvalidRequest, ReplyFailed
from conversations.models import Generation, Message
from conversations.services import continuing, messages
from conversations.services.answer_requests import Sent
from conversations.services.messages import NewMessage
from conversations.streaming.follow import Limits, follow
from conversations.streaming.hub import current_hub
from conversations.streaming.snapshot import snapshot_of
from conversations.streaming.sse import stream_response
from foundation.database import in_database, in_request_thread
from foundation.errors import DomainError
from inference.exceptions import NoCapacity

_IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="Makes the call safe to repeat for 24 hours."
)
_RESPONSES = {(200, STREAM_TYPE): EVENT_STREAM, (200, "application/json"): WholeReplySerializer}
_FAILURES: dict[str, type[DomainError]] = {each.code: each for each in (ContentTooLong, InvalidRequest, NoCapacity)}
_TRY_AGAIN_SECONDS = 5

_PLACES = asyncio.Semaphore(max(8, settings.DATABASE_POOL_SIZE - 8))
"""Requests that begin a reply at the same moment. More of them than the pool has connections to spare would not wait
their turn but fail."""


class ReplyBegun(HttpResponse):
    """What a synchronous view hands over to the async part: the reply is on its way, follow it."""

    def __init__(self, sent: Sent, caller: Caller, *, is_streamed: bool) -> None:
        super().__init__()
        self.snapshot = snapshot_of(sent.generation)
        self.limits = Limits.within(sent.allowance)
        self.is_streamed = is_streamed
        self.caller = caller
        self.rate_limit_headers = quotas.rate_limit_headers(sent.allowance)
        self.user_id: UUID = sent.generation.user_id


class SendMessageView(MessagesView):
    """`POST /v1/conversations/{conversation_id}/messages`, and the list at the same address."""

    required_scope = {**MessagesView.required_scope, "POST": "chat"}

    @extend_schema(
        operation_id="send_message",
        tags=["Messages"],
        parameters=[_IDEMPOTENCY_KEY],
        request=NewMessageSerializer,
        responses=_RESPONSES,
    )
    def post(self, request: Request, conversation_id: UUID) -> HttpResponse:
        """Send a message; the answer is the stream of the reply, or with `"stream": false` the finished message.

        Where the model fails, the stream tells it in an `error` event; with `"stream": false` the status is that of the
        error (503 `no_capacity`, say), whose `details` name the generation: what was written until then is kept there.
        """
        asked = NewMessageSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        message = NewMessage(
            content=values["content"],
            model=values.get("model"),
            parent=values.get("parent_id", "active"),
            options=values.get("options", {}),
            is_background=values["background"],
        )
        sent = messages.send(
            user=user_of(request),
            conversation_id=conversation_id,
            message=message,
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
        return ReplyBegun(sent, caller_of(request), is_streamed=values["stream"])


class RegenerateView(APIView):
    """`POST /v1/messages/{message_id}/regenerate`."""

    scope = "chat"

    @extend_schema(
        operation_id="regenerate_message",
        tags=["Messages"],
        parameters=[_IDEMPOTENCY_KEY],
        request=RegenerateSerializer,
        responses=_RESPONSES,
    )
    def post(self, request: Request, message_id: UUID) -> HttpResponse:
        """Have another answer written under the same user message."""
        asked = RegenerateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        sent = messages.regenerate(
            user=user_of(request),
            message_id=message_id,
            model=asked.validated_data.get("model"),
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
        return ReplyBegun(sent, caller_of(request), is_streamed=asked.validated_data["stream"])


class ContinueView(APIView):
    """`POST /v1/messages/{message_id}/continue`."""

    scope = "chat"

    @extend_schema(
        operation_id="continue_message",
        tags=["Messages"],
        parameters=[_IDEMPOTENCY_KEY],
        request=ContinueSerializer,
        responses=_RESPONSES,
    )
    def post(self, request: Request, message_id: UUID) -> HttpResponse:
        """Have an answer go on that ended with `length` or `cancelled`.

        What is written becomes a new message whose parent is that answer, and holds only the text that continues it.
        """
        asked = ContinueSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        sent = continuing.continue_answer(
            user=user_of(request),
            message_id=message_id,
            options=values.get("options"),
            is_background=values["background"],
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
        return ReplyBegun(sent, caller_of(request), is_streamed=values["stream"])


def followed(view: Callable[..., HttpResponseBase]) -> Callable[..., Any]:
    """Wrap a view so that a `ReplyBegun` is followed to its end; any other answer passes unchanged."""

    @wraps(view)
    @csrf_exempt  # the REST framework's authentication checks it where a session cookie is used
    async def asynchronous(request: HttpRequest, **ids: UUID) -> HttpResponseBase:
        async with _PLACES:
            response = await in_request_thread(view, request, **ids)
        if not isinstance(response, ReplyBegun):
            return response
        if response.is_streamed:
            return stream_response(
                response.snapshot, response.caller, limits=response.limits, headers=response.rate_limit_headers
            )
        return await _whole_reply(response)

    return asynchronous


async def _whole_reply(begun: ReplyBegun) -> JsonResponse:
    with current_hub().openings.opened_by(begun.caller) as opening:
        async with aclosing(follow(begun.snapshot, opening=opening)) as events:
            async for _ in events:
                pass
    if opening.refusal is not None:
        raise opening.refusal
    generation = await in_database(queries.generation_of, begun.user_id, begun.snapshot.generation_id)
    if generation.status == Message.Status.FAILED:
        raise _failure(generation, begun.rate_limit_headers)
    return JsonResponse(WholeReplySerializer(generation.message).data, headers=begun.rate_limit_headers)


def _failure(generation: Generation, headers: Mapping[str, str]) -> DomainError:
    """Return the failure as an error: who reads only the status must not take half an answer for a whole one."""
    names = ("generation_id", "message_id", "conversation_id")
    ids = (generation.pk, generation.pk, generation.conversation_id)
    return _FAILURES.get(generation.error_code, ReplyFailed)(
        generation.error_message,
        details={name: str(each) for name, each in zip(names, ids, strict=True)},
        retry_after_seconds=_TRY_AGAIN_SECONDS if generation.error_code == NoCapacity.code else None,
        headers=headers,
    )


urlpatterns = [
    path("conversations/<uuid:conversation_id>/messages", followed(SendMessageView.as_view()), name="messages"),
    path("messages/<uuid:message_id>/continue", followed(ContinueView.as_view()), name="continue"),
    path("messages/<uuid:message_id>/regenerate", followed(RegenerateView.as_view()), name="regenerate"),
]
