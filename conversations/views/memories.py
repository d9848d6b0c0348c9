"""The page of what is remembered, and of standing instructions."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.views.access import SignedInRequest, signed_in
from conversations import queries
from conversations.exceptions import InvalidRequest
from conversations.forms import InstructionsForm, MemoryForm, SwitchForm, valid
from conversations.services import memories, preferences
from conversations.services.conversations import MOST_INSTRUCTION_CHARACTERS
from conversations.services.memory_limits import most_memories
from conversations.views.presentation import ShownMemory, shown_memories


@dataclass(frozen=True, slots=True)
class _Refused:
    """What could not be kept, and why; `memory_id` is empty where it was to be a new memory."""

    message: str
    text: str = ""
    memory_id: UUID | None = None


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: SignedInRequest) -> HttpResponse:
    """Show what is remembered, or remember what the user has written."""
    if request.method != "POST":
        return _page(request)
    try:
        fields = valid(MemoryForm(request.POST))
        expires_at = _end_of(fields["expires_on"])
        kept = memories.create(user=request.user, content=fields["content"], expires_at=expires_at)
    except InvalidRequest as error:
        return _page(request, _Refused(error.message, request.POST.get("content", "")))
    return _back(request, "Remembered." if kept.is_new else "This was remembered already.")


@require_POST
@signed_in
def change(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Change what a memory says, and until when."""
    memory = queries.memory_of(request.user.id, memory_id)
    try:
        fields = valid(MemoryForm(request.POST))
        changes = {"content": fields["content"]}
        if fields["expires_on"] != shown_memories([memory])[0].expires_on:
            changes["expires_at"] = _end_of(fields["expires_on"])
        memories.change(user=request.user, memory_id=memory_id, changes=changes)
    except InvalidRequest as error:
        return _page(request, _Refused(error.message, request.POST.get("content", ""), memory_id))
    return _back(request, "Changed.")


@require_POST
@signed_in
def switch(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Switch a memory on or off."""
    is_on = valid(SwitchForm(request.POST))["on"]
    memories.change(user=request.user, memory_id=memory_id, changes={"enabled": is_on})
    return _back(request, "Switched on." if is_on else "Switched off; it is not used any more.")


@require_POST
@signed_in
def accept(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Remember what was proposed."""
    try:
        memories.change(user=request.user, memory_id=memory_id, changes={"confirmed": True})
    except InvalidRequest as error:
        return _page(request, _Refused(error.message))
    return _back(request, "Remembered.")


@require_POST
@signed_in
def decline(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Forget what was proposed."""
    memories.decline(user=request.user, memory_id=memory_id)
    return _back(request, "Declined.")


@require_POST
@signed_in
def review(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Hear that an old memory still holds."""
    memories.change(user=request.user, memory_id=memory_id, changes={"reviewed": True})
    return _back(request, "Thank you.")


@require_POST
@signed_in
def delete(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Forget a memory for good."""
    memories.delete(user=request.user, memory_id=memory_id)
    return _back(request, "Deleted.")


@require_POST
@signed_in
def switch_all(request: SignedInRequest) -> HttpResponse:
    """Have memories used, or left alone."""
    is_on = valid(SwitchForm(request.POST))["on"]
    preferences.change(user=request.user, changes={"uses_memories": is_on})
    return _back(request, "Memories are used from now on." if is_on else "Memories are left alone from now on.")


@require_POST
@signed_in
def instruct(request: SignedInRequest) -> HttpResponse:
    """Keep the standing instructions."""
    try:
        instructions = valid(InstructionsForm(request.POST))["instructions"]
        preferences.change(user=request.user, changes={"instructions": instructions})
    except InvalidRequest as error:
        return _page(request, _Refused(error.message), instructions=request.POST.get("instructions", ""))
    return _back(request, "Your instructions are saved.")


def _page(
    request: SignedInRequest, refused: _Refused | None = None, *, instructions: str | None = None
) -> HttpResponse:
    preference = preferences.preference_of(request.user.id)
    shown = shown_memories(queries.memories_of(request.user.id))
    if refused:
        shown = [replace(one, text=refused.text) if one.memory.id == refused.memory_id else one for one in shown]
    context = {
        "instructions": preference.instructions if instructions is None else instructions,
        "most_instruction_characters": MOST_INSTRUCTION_CHARACTERS,
        "uses_memories": preference.uses_memories,
        "refused": refused,
        "new_text": refused.text if refused and not refused.memory_id else "",
        "most_memories": most_memories(request.user),
        "proposals": [one for one in shown if one.memory.is_proposed],
        "memories": sorted(filter(_is_kept, shown), key=lambda one: not one.memory.needs_review),
    }
    return render(request, "conversations/memories.html", context, status=422 if refused else 200)


def _is_kept(shown: ShownMemory) -> bool:
    return not shown.memory.is_proposed


def _back(request: SignedInRequest, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return redirect("memories_page")


def _end_of(day: date | None) -> datetime | None:
    """Return the moment at which a day is over, in UTC."""
    return datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
