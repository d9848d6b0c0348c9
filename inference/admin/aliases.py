"""What users choose, in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from foundation.audited_admin import AuditedAdmin, asks_why
from inference.models import ModelAlias, VersionWeight


class ShareInline(admin.TabularInline):  # type: ignore[type-arg]
    """Which versions answer, and for which part of the conversations."""

    model = VersionWeight
    extra = 1
    autocomplete_fields = ("version",)
    verbose_name_plural = "shares of its conversations"


@admin.register(ModelAlias)
class ModelAliasAdmin(AuditedAdmin):
    """A model is offered as soon as one of its versions has a replica."""

    list_display = ("name", "position", "is_default", "shares", "fallback")
    list_select_related = ("fallback",)
    search_fields = ("name",)
    readonly_fields = ("is_default",)
    inlines = (ShareInline,)
    actions = ("make_default",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelAlias]:
        return super().get_queryset(request).prefetch_related("shares__version")

    def shares(self, alias: ModelAlias) -> str:
        return ", ".join(f"{share.version} {share.weight}" for share in alias.shares.all()) or "none: not offered"

    @asks_why("Make it the default: it answers whoever chose none")
    def make_default(self, request: HttpRequest, aliases: QuerySet[ModelAlias], asked: dict[str, Any]) -> None:
        chosen = list(aliases)
        if len(chosen) != 1:
            self.message_user(request, "One model can be the default; select one.", messages.ERROR)
            return
        chosen[0].make_default()
        changes = {"is_default": {"before": False, "after": True}}
        self.audit_with_history(request, "made_default", chosen[0], "Made the default.", changes)
        self.message_user(request, f"{chosen[0]} is the default.", messages.SUCCESS)
