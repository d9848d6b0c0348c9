"""What the composer and an answer's buttons do."""

from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.views.access import SignedInRequest, signed_in, wants_fragment
from conversations import queries
from conversations.exchanges import exchange_of
from conversations.forms import MessageForm
from conversations.services import continuing, generations
from conversations.services import messages as message_services
from conversations.services.answer_requests import Sent
from conversations.views.presentation import ShownConversation, shown_messages


@require_POST
@signed_in
def send(request: SignedInRequest, conversation_id: UUID | None = None) -> HttpResponse:
    """Send a message; without a conversation, its first one makes it."""
    form = MessageForm(request.POST)
    # A page without scripts watches no stream; its answer must not be taken for abandoned.
    message = form.message(is_background=not wants_fragment(request))
    sent = message_services.send(
        user=request.user,
        conversation_id=conversation_id,
        message=message,
        idempotency_key=form.cleaned_data["idempotency_key"] or None,
    )
    return _sent(request, sent)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def messages(request: SignedInRequest, conversation_id: UUID) -> HttpResponse:
    """Send a message to this conversation, or show anew what is in it."""
    if request.method == "POST":
        return send(request, conversation_id=conversation_id)
    found = queries.conversation_of(request.user.id, conversation_id)
    shown = shown_messages(queries.active_branch(found))
    return render(request, "conversations/_messages.html", {"shown_messages": shown})


@require_POST
@signed_in
def regenerate(request: SignedInRequest, message_id: UUID) -> HttpResponse:
    """Ask for another answer beside this one."""
    key = request.POST.get("idempotency_key") or None
    sent = message_services.regenerate(user=request.user, message_id=message_id, idempotency_key=key)
    return _sent(request, sent)


@require_POST
@signed_in
def continue_answer(request: SignedInRequest, message_id: UUID) -> HttpResponse:
    """Have an answer that was cut off go on."""
    sent = continuing.continue_answer(
        user=request.user,
        message_id=message_id,
        is_background=not wants_fragment(request),
        idempotency_key=request.POST.get("idempotency_key") or None,
    )
    return _sent(request, sent)


@require_POST
@signed_in
def cancel(request: SignedInRequest, generation_id: UUID) -> HttpResponse:
    """Stop an answer; what is written of it stays."""
    generations.cancel(user=request.user, generation_id=generation_id)
    if wants_fragment(request):
        return HttpResponse(status=204)
    found = queries.generation_of(request.user.id, generation_id)
    return redirect("conversation", found.conversation_id)


def _sent(request: SignedInRequest, sent: Sent) -> HttpResponse:
    if not wants_fragment(request):
        return redirect("conversation", sent.conversation.id)
    context = {
        "conversation": sent.conversation,
        "temporary_keep_hours": settings.TEMPORARY_KEEP_HOURS,
        "row": ShownConversation(sent.conversation, is_current=True, is_answering=sent.answer.is_under_way),
        "shown_messages": shown_messages(exchange_of(sent.answer)),
    }
    return render(request, "conversations/_sent.html", context)
