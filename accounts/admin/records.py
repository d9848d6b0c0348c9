"""What is only ever read: the ledger of usage, the audit log, sanctions, erasures."""

import json

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from accounts.models import AuditLog, Erasure, Sanction, UsageRecord
from foundation.read_only_admin import ReadOnlyAdmin

_SHOWN_CHARACTERS = 80


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

    list_display = ("created_at", "who", "action", "subject", "why")
    list_select_related = ("actor",)
    list_filter = ("action", "subject_type")
    search_fields = ("actor__email", "=subject_id", "reason")
    date_hierarchy = "created_at"
    fields = ("created_at", "who", "action", "subject", "subject_id", "reason", "what_changed")

    @admin.display(description="Who", ordering="actor")
    def who(self, row: AuditLog) -> str:
        return str(row.actor) if row.actor else "the system"

    @admin.display(description="Whom or what", ordering="subject_type")
    def subject(self, row: AuditLog) -> str:
        """Lead to its page, for as long as it has one."""
        apps_of = {model._meta.model_name: model._meta.app_label for model in self.admin_site._registry}
        if not row.subject_id or row.subject_type not in apps_of:
            return row.subject_type
        page = f"{self.admin_site.name}:{apps_of[row.subject_type]}_{row.subject_type}_change"
        return format_html('<a href="{}">{}</a>', reverse(page, args=[row.subject_id]), row.subject_type)

    @admin.display(description="Why", ordering="reason")
    def why(self, row: AuditLog) -> str:
        return Truncator(row.reason).chars(_SHOWN_CHARACTERS)

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
