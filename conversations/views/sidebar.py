"""The list of conversations, and what a row's menu does."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.views.access import SignedInRequest, signed_in, wants_fragment
from conversations import queries
from conversations.forms import TitleForm, valid
from conversations.models import Conversation
from conversations.services import conversations as conversation_services
from conversations.views.presentation import ShownConversation, followed, shown_conversations


@require_safe
@signed_in
def older(request: SignedInRequest) -> HttpResponse:
    """Return the rows that follow a cursor."""
    page = queries.recent_conversations(request.user.id, cursor=request.GET.get("cursor"))
    answering = followed(queries.under_way_of(request.user.id))
    rows = shown_conversations(page, current_id=None, answering=answering)
    context = {"shown_conversations": rows, "next_cursor": page.next_cursor}
    return render(request, "conversations/_older_rows.html", context)


@require_safe
@signed_in
def row(request: SignedInRequest, conversation_id: UUID) -> HttpResponse:
    """Return one row as it is now; nothing for a conversation that is in no list."""
    found = queries.conversation_of(request.user.id, conversation_id)
    if found.temporary:
        return HttpResponse(status=204)
    return _row(request, found)


@require_POST
@signed_in
def rename(request: SignedInRequest, conversation_id: UUID) -> HttpResponse:
    """Give a conversation the title that the user chose."""
    title = valid(TitleForm(request.POST))["title"]
    changed = conversation_services.change(user=request.user, conversation_id=conversation_id, changes={"title": title})
    if wants_fragment(request):
        return _row(request, changed)
    return redirect("conversation", conversation_id)


@require_POST
@signed_in
def delete(request: SignedInRequest, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation for good."""
    conversation_services.delete(user=request.user, conversation_id=conversation_id)
    if wants_fragment(request):
        return HttpResponse(status=204)
    return redirect("new_conversation")


def _row(request: SignedInRequest, conversation: Conversation) -> HttpResponse:
    answering = followed(queries.under_way_of(request.user.id))
    is_answering = any(one.conversation_id == conversation.id for one in answering)
    shown = ShownConversation(conversation, is_current=False, is_answering=is_answering)
    return render(request, "conversations/_conversation_row.html", {"row": shown})
