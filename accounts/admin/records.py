"""What is only ever read: the ledger of usage, the audit log, sanctions, erasures."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.models import AuditLog, Erasure, Sanction, UsageRecord
from foundation.read_only_admin import ReadOnlyAdmin


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    """The ledger of what was used."""

    list_display = ("created_at", "user", "model", "tokens_in", "tokens_cached", "tokens_out", "cost")
    list_select_related = ("user",)
    list_filter = ("model",)
    search_fields = ("user__email",)
    date_hierarchy = "created_at"


@admin.register(AuditLog)
class AuditLogAdmin(ReadOnlyAdmin):
    """Who of the staff did what, and why; without a name it was the system."""

    list_display = ("created_at", "who", "action", "subject_type", "subject_id", "reason")
    list_select_related = ("actor",)
    list_filter = ("action", "subject_type")
    search_fields = ("actor__email", "=subject_id", "reason")
    date_hierarchy = "created_at"
    fields = ("created_at", "who", "action", "subject_type", "subject_id", "reason", "what_changed")

    @admin.display(description="Who", ordering="actor")
    def who(self, row: AuditLog) -> str:
        return str(row.actor) if row.actor else "the system"

    @admin.display(description="What changed")
    def what_changed(self, row: AuditLog) -> SafeString:
        return format_html("<pre>{}</pre>", json.dumps(row.changes, indent=2, ensure_ascii=False))


@admin.register(Sanction)
class SanctionAdmin(ReadOnlyAdmin):
    """Imposed and lifted on the list of users; here they are on record."""

    list_display = ("created_at", "user", "kind", "reason", "imposed_by", "ends_at", "lifted_at")
    list_select_related = ("user", "imposed_by")
    list_filter = ("kind",)
    search_fields = ("user__email",)


@admin.register(Erasure)
class ErasureAdmin(ReadOnlyAdmin):
    """Erasures and their receipts, which name nobody."""

    list_display = ("id", "requested_at", "completed_at", "attempts")
    fields = ("id", "requested_at", "completed_at", "attempts", "stores")
