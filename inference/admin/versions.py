"""Pinned models in the admin."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from inference.models import ModelVersion, Replica


class ReplicaInline(admin.TabularInline):  # type: ignore[type-arg]
    """The servers that run the version."""

    model = Replica
    extra = 1


@admin.register(ModelVersion)
class ModelVersionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A change is in force within two seconds, without a restart."""

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
