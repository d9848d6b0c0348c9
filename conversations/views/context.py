"""What the model saw, as a page."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.views.access import SignedInRequest, signed_in
from conversations import queries
from conversations.costs import price_of, total_of
from conversations.seen_context import seen_context


@require_safe
@signed_in
def what_the_model_saw(request: SignedInRequest, generation_id: UUID) -> HttpResponse:
    """Show the parts of the prompt that one answer was written to."""
    generation = queries.generation_of(request.user.id, generation_id)
    context = {
        "generation": generation,
        "seen": seen_context(generation),
        "links_messages": True,
        "total": total_of(generation.conversation),
        "cost": price_of(generation.conversation),
    }
    return render(request, "conversations/context.html", context)
