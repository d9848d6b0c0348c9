"""Exports and imports in the admin: how far they are. Nothing of what is in them."""

from django.contrib import admin

from conversations.models.transfer import Export, Import
from foundation.read_only_admin import ReadOnlyAdmin


@admin.register(Export)
class ExportAdmin(ReadOnlyAdmin):
    """What users take along."""

    list_display = ("id", "user", "status", "byte_count", "attempts", "created_at", "expires_at")
    list_filter = ("status",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    fields = list_display


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    """What users bring in; the report, which may quote it, is theirs."""

    list_display = ("id", "user", "status", "progress", "attempts", "created_at")
    list_filter = ("status",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    fields = list_display
