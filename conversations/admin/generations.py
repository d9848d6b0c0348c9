"""Generations in the admin, and what their models saw: for those who may, with a reason."""

from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from conversations.models import Generation
from conversations.services.inspection import inspect_context
from foundation.audit import LEAST_REASON_CHARACTERS, MOST_REASON_CHARACTERS
from foundation.read_only_admin import ReadOnlyAdmin

_SEE_CONTEXT = "conversations.see_context"


class ReasonForm(forms.Form):
    """Why somebody looks."""

    reason = forms.CharField(
        label="Why do you need to see it?",
        min_length=LEAST_REASON_CHARACTERS,
        max_length=MOST_REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
    )


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    """How answers came about. Nothing here holds text: also not the options, whose stop strings are the user's."""

    list_display = ("message_id", "user", "model", "status", "attempt", "queued_at", "finished_at", "finish_reason")
    list_filter = ("status", "finish_reason", "model")
    list_select_related = ("user",)
    ordering = ("-message_id",)
    search_fields = ("user__email",)
    search_help_text = "A generation's id, or an email address."
    fields = (
        "message_id",
        "conversation_id",
        "user",
        "model",
        "model_version",
        "replica",
        "priority_class",
        "status",
        "attempt",
        "notices",
        "queued_at",
        "started_at",
        "first_token_at",
        "finished_at",
        "finish_reason",
        "error_code",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Generation], search_term: str
    ) -> tuple[QuerySet[Generation], bool]:
        try:
            return queryset.filter(pk=UUID(search_term.strip())), False
        except ValueError:
            return super().get_search_results(request, queryset, search_term)

    def get_fields(self, request: HttpRequest, obj: Generation | None = None) -> tuple[str, ...]:
        return (*self.fields, "what_the_model_saw") if request.user.has_perm(_SEE_CONTEXT) else self.fields

    def what_the_model_saw(self, generation: Generation) -> SafeString:
        address = reverse("admin:conversations_generation_context", args=[generation.pk])
        return format_html('<a href="{}">Give a reason and look</a>', address)

    def get_urls(self) -> list[URLPattern]:
        view = require_http_methods(["GET", "HEAD", "POST"])(never_cache(self.context_view))
        address = path(
            "<uuid:generation_id>/context/", self.admin_site.admin_view(view), name="conversations_generation_context"
        )
        return [address, *super().get_urls()]

    def context_view(self, request: HttpRequest, generation_id: UUID) -> HttpResponse:
        """Ask for a reason; once it is written down, show what the model saw."""
        if not (isinstance(request.user, User) and request.user.has_perm(_SEE_CONTEXT)):
            raise PermissionDenied
        generation = get_object_or_404(Generation.objects.with_what_they_follow(), pk=generation_id)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        is_told = form.is_valid()
        seen = (
            inspect_context(actor=request.user, generation=generation, reason=form.cleaned_data["reason"])
            if is_told
            else None
        )
        context = {
            **self.admin_site.each_context(request),
            "title": "What the model saw",
            "opts": self.opts,
            "media": self.media,
            "generation": generation,
            "form": form,
            "is_told": is_told,
            "seen": seen,
        }
        return TemplateResponse(request, "admin/conversations/generation/context.html", context)
