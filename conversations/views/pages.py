"""The chat's page: a new conversation, or one that is there."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.views.access import SignedInRequest, signed_in
from conversations import queries
from conversations.models import Conversation
from conversations.views.model_choices import model_choices
from conversations.views.presentation import Followed, followed, shown_conversations, shown_messages
from foundation.ids import new_id


@require_safe
@signed_in
def new_conversation(request: SignedInRequest) -> HttpResponse:
    """Show an empty conversation; it is made when its first message is sent."""
    is_temporary = request.GET.get("temporary") == "1"
    context = _page(request, None, model="") | {"draft": request.GET.get("prompt", ""), "is_temporary": is_temporary}
    return render(request, "conversations/page.html", context)


@require_safe
@signed_in
def conversation(request: SignedInRequest, conversation_id: UUID) -> HttpResponse:
    """Show a conversation's active branch, with what is written of an answer under way."""
    found = queries.conversation_of(request.user.id, conversation_id)
    shown = shown_messages(queries.active_branch(found))
    is_answering = bool(shown) and shown[-1].message.is_under_way
    model = shown[-1].message.model if shown else found.model
    context = _page(request, found, model=model) | {
        "shown_messages": shown,
        "is_answering": is_answering,
        "is_temporary": found.temporary,
    }
    return render(request, "conversations/page.html", context)


@require_safe
@signed_in
def model_choice(request: SignedInRequest) -> HttpResponse:
    """Return the composer's model list, for a page on which a model was not there yet."""
    choices = model_choices(request.user.tier, request.GET.get("model", ""))
    return render(request, "conversations/_model_choice.html", {"model_choices": choices})


def _page(request: SignedInRequest, shown: Conversation | None, *, model: str) -> dict[str, Any]:
    under_way = followed(queries.under_way_of(request.user.id))
    recent = queries.recent_conversations(request.user.id, cursor=request.GET.get("cursor"))
    return {
        "conversation": shown,
        "temporary_keep_hours": settings.TEMPORARY_KEEP_HOURS,
        "model_choices": model_choices(request.user.tier, model),
        "idempotency_key": new_id(),
        "followed_elsewhere": [_as_json(one) for one in under_way],
        "shown_conversations": shown_conversations(recent, current_id=shown.id if shown else None, answering=under_way),
        "next_cursor": recent.next_cursor,
    }


def _as_json(one: Followed) -> dict[str, str | int]:
    ids = {"generation_id": str(one.generation_id), "conversation_id": str(one.conversation_id)}
    return {**ids, "event_id": one.event_id}
