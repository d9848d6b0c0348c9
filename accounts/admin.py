"""Accounts, tiers, keys and usage in the admin. No secret is shown, and none can be: only digests are kept."""

from allauth.account.decorators import secure_admin_login
from allauth.usersessions.admin import UserSessionAdmin
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.api_keys import revoke_key
from accounts.forms import NewUserForm, UserForm
from accounts.models import APIKey, AuditLog, Tier, UsageRecord, User
from foundation.read_only_admin import ReadOnlyAdmin

# Signing in to the admin goes the way of everybody: with its rate limits and its checks.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


@admin.register(User)
class UserAdmin(DjangoUserAdmin):  # type: ignore[type-arg]
    """An account is suspended rather than deleted: its conversations would go with it."""

    form = UserForm
    add_form = NewUserForm
    ordering = ("email",)
    list_display = ("email", "name", "tier", "is_active", "is_staff", "date_joined")
    list_filter = ("tier", "is_active", "is_staff")
    list_select_related = ("tier",)
    search_fields = ("email", "name")
    readonly_fields = ("date_joined", "last_login")
    fieldsets = (
        (None, {"fields": ("email", "name", "password", "tier")}),
        (
            "What the account may do",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Dates", {"fields": ("date_joined", "last_login")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "tier", "usable_password", "password1", "password2")}),)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


@admin.register(Tier)
class TierAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The tier of new accounts cannot be deleted."""

    list_display = (
        "name", "priority_class", "requests_per_window", "window_seconds", "max_answer_tokens", "uses_answer_cache",
    )  # fmt: skip

    def has_delete_permission(self, request: HttpRequest, obj: Tier | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.pk != settings.DEFAULT_TIER)


@admin.register(APIKey)
class APIKeyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Keys can be seen and revoked."""

    list_display = ("prefix", "name", "user", "scopes", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__email")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke the selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, keys: QuerySet[APIKey]) -> None:
        for key in keys:
            revoke_key(key)
            self.log_change(request, key, "Revoked.")

    def get_readonly_fields(self, request: HttpRequest, obj: APIKey | None = None) -> list[str]:
        return [field.name for field in APIKey._meta.fields if field.name != "digest"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: APIKey | None = None) -> bool:
        return False


class SessionAdmin(UserSessionAdmin):  # type: ignore[misc]
    """Sessions begin by signing in; allauth's own looks for a user name when it searches."""

    search_fields = ("user__email", "ip")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


admin.site.unregister(UserSession)
admin.site.register(UserSession, SessionAdmin)


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    """The ledger of what was used."""

    list_display = ("created_at", "user", "model", "tokens_in", "tokens_cached", "tokens_out")
    list_select_related = ("user",)
    list_filter = ("model",)
    search_fields = ("user__email",)
    date_hierarchy = "created_at"


@admin.register(AuditLog)
class AuditLogAdmin(ReadOnlyAdmin):
    """Who of the staff did what, and why."""

    list_display = ("created_at", "actor", "action", "subject_type", "subject_id", "reason")
    list_select_related = ("actor",)
    list_filter = ("action",)
    search_fields = ("actor__email", "=subject_id")
    date_hierarchy = "created_at"
