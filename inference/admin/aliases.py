"""What users choose, in the admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from inference.models import ModelAlias, VersionWeight


class ShareInline(admin.TabularInline):  # type: ignore[type-arg]
    """Which versions answer, and for which part of the conversations."""

    model = VersionWeight
    extra = 1
    autocomplete_fields = ("version",)
    verbose_name_plural = "shares of its conversations"


@admin.register(ModelAlias)
class ModelAliasAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
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

    @admin.action(description="Make it the default: it answers whoever chose none", permissions=["change"])
    def make_default(self, request: HttpRequest, aliases: QuerySet[ModelAlias]) -> None:
        chosen = list(aliases)
        if len(chosen) != 1:
            self.message_user(request, "One model can be the default; select one.", messages.ERROR)
            return
        chosen[0].make_default()
        self.log_change(request, chosen[0], "Made the default.")
        self.message_user(request, f"{chosen[0]} is the default.", messages.SUCCESS)
