"""Pinned models in the admin."""

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from foundation.audited_admin import AuditedAdmin
from inference.models import ModelVersion, Replica
from inference.tokenizer_files import BrokenTokenizer, is_file_name, load_file


class ReplicaInline(admin.TabularInline):  # type: ignore[type-arg]
    """The servers that run the version."""

    model = Replica
    extra = 1


class ModelVersionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A version whose tokenizer, where it is a file, can be loaded."""

    class Meta:
        help_texts = {
            "tokenizer": (
                "Empty: servers of the version are asked to count. The path of a tokenizer.json on all our machines:"
                " counting with it is several times as fast. Any other name: servers are asked, and versions with the"
                " same name share their counts. A changed tokenizer needs a new path or name."
            )
        }

    def clean_tokenizer(self) -> str:
        """Refuse a file that is not here, or does not load."""
        tokenizer: str = self.cleaned_data["tokenizer"]
        if is_file_name(tokenizer):
            try:
                load_file(tokenizer)
            except BrokenTokenizer as error:
                raise forms.ValidationError(str(error), code="tokenizer") from error
        return tokenizer


@admin.register(ModelVersion)
class ModelVersionAdmin(AuditedAdmin):
    """A change is in force within two seconds, without a restart."""

    form = ModelVersionForm
    list_display = ("name", "model_id", "revision", "context_tokens", "max_answer_tokens", "offered_as", "servers")
    search_fields = ("name", "model_id")
    inlines = (ReplicaInline,)
    fieldsets = (
        (None, {"fields": ("name",)}),
        (
            "What a server must say it serves",
            {"fields": ("model_id", "revision"), "description": "A server that says something else gets no request."},
        ),
        ("Limits", {"fields": ("context_tokens", "max_answer_tokens", "tokenizer")}),
        ("Abilities", {"fields": (("has_tools", "has_vision", "has_reasoning"),)}),
        ("Prices", {"fields": (("price_in", "price_cached", "price_out"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelVersion]:
        return super().get_queryset(request).prefetch_related("shares__alias", "replicas")

    def offered_as(self, version: ModelVersion) -> str:
        return ", ".join(share.alias.name for share in version.shares.all()) or "nothing"

    def servers(self, version: ModelVersion) -> int:
        return len(version.replicas.all())
