"""What the admin may show and nobody may change there."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from foundation.audited_admin import AuditedAdmin


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows can be read, and nothing else."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ActedOnAdmin(ReadOnlyAdmin, AuditedAdmin):
    """Rows can be read, and acted on by those who may change them; there is no form that changes them."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_view_permission(request, obj) or self.has_act_permission(request)


class ReadOnlyInline(admin.TabularInline):  # type: ignore[type-arg]
    """Rows that belong to another and can only be read, by those who may see such rows."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
