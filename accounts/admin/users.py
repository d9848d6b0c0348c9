"""Accounts in the admin: seen, warned, suspended, signed out. None is deleted here: erasure goes its own way."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts import sanctions
from accounts.admin import rights
from accounts.admin.tier_changes import put_on_tier
from accounts.admin.user_columns import UserColumns, with_columns
from accounts.admin.user_forms import PasswordForm, SuspensionForm, TierChangeForm, WarningForm
from accounts.admin.user_panels import PANELS
from accounts.forms import NewUserForm, UserForm
from accounts.models import User
from accounts.signing_out import sign_out_everywhere
from foundation.audited_admin import AuditedAdmin, asks_why

_TOLD = ("standing", "tokens_today", "answers_under_way", "sessions", "acts", "date_joined", "last_login")
_POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")


@admin.register(User)
class UserAdmin(UserColumns, AuditedAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """Whoever is no superuser changes neither addresses nor powers, and nothing of the accounts of staff."""

    form = UserForm
    add_form = NewUserForm
    change_password_form = PasswordForm
    change_user_password_template = "admin/accounts/user/change_password.html"  # noqa: S105 — no password
    ordering = ("email",)
    list_display = ("email", "standing", "tier", "tokens_today", "answers_under_way", "sessions")
    list_per_page = 50
    list_filter = ("tier", "is_active", "is_staff")
    list_select_related = ("tier",)
    search_fields = ("email", "name")
    inlines = PANELS
    actions = ("sign_out", "warn", "suspend", "lift", "change_tier")
    fieldsets = (
        (None, {"fields": ("email", "name", "password", "tier", "time_zone")}),
        ("Now", {"fields": ("standing", "tokens_today", "answers_under_way", "sessions")}),
        ("What the account may do", {"fields": ("is_active", *_POWERS)}),
        ("Before", {"fields": ("acts", "date_joined", "last_login")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "tier", "usable_password", "password1", "password2")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return with_columns(super().get_queryset(request))

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        hidden = set()
        if not request.user.is_superuser:
            hidden.add("password")  # it leads to where another is set
        if not request.user.has_perm("accounts.view_auditlog"):
            hidden.add("acts")
        return [
            (title, {**options, "fields": [name for name in options["fields"] if name not in hidden]})
            for title, options in super().get_fieldsets(request, obj)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        if obj is None:
            return () if self.has_plan_permission(request) else ("tier",)
        always = ("tier", "is_active", *_TOLD)
        return always if request.user.is_superuser else (*always, "email", *_POWERS)

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return self.inlines if obj is not None else ()

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        may = super().has_change_permission(request, obj)
        return may and (obj is None or rights.may_act_on(request.user, obj))

    def has_sanction_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.add_sanction")

    def has_plan_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_subscription")

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:  # noqa: A002 — Django's
        """Set a password, which ends every sign-in. For superusers: who could do it could sign in as anybody."""
        if not request.user.is_superuser:
            raise PermissionDenied
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        if "password" in getattr(message, "changes", {}) or "password1" in getattr(message, "changes", {}):
            sign_out_everywhere(obj)
        return super().log_change(request, obj, message)

    @asks_why("Sign out everywhere", note="Every session, app sign-in, stream and socket of these accounts ends.")
    def sign_out(self, request: HttpRequest, users: QuerySet[User], asked: dict[str, Any]) -> None:
        for user in rights.chosen_users(request.user, users):
            count = sign_out_everywhere(user)
            self.audit(request, "signed_out_everywhere", user, {"sessions": {"before": count, "after": 0}})
        self.message_user(request, "Signed out everywhere.", messages.SUCCESS)

    @asks_why("Warn", permissions=["sanction"], form=WarningForm)
    def warn(self, request: HttpRequest, users: QuerySet[User], asked: dict[str, Any]) -> None:
        for user in rights.chosen_users(request.user, users):
            sanctions.warn(user, reason=asked["told"], why=asked["why"], by=_actor(request))
        self.message_user(request, "The warning is on record.", messages.SUCCESS)

    @asks_why("Suspend", permissions=["sanction"], form=SuspensionForm, note="Every sign-in ends at once.")
    def suspend(self, request: HttpRequest, users: QuerySet[User], asked: dict[str, Any]) -> None:
        for user in rights.chosen_users(request.user, users):
            sanctions.suspend(
                user, reason=asked["told"], why=asked["why"], ends_at=asked["ends_at"], by=_actor(request)
            )
        self.message_user(request, "Suspended.", messages.SUCCESS)

    @asks_why("Lift the suspension", permissions=["sanction"])
    def lift(self, request: HttpRequest, users: QuerySet[User], asked: dict[str, Any]) -> None:
        for user in rights.chosen_users(request.user, users):
            sanctions.lift(user, why=asked["why"], by=_actor(request))
        self.message_user(request, "The accounts can sign in again.", messages.SUCCESS)

    @asks_why(
        "Change the tier", permissions=["plan"], form=TierChangeForm, note="The next request follows the new tier."
    )
    def change_tier(self, request: HttpRequest, users: QuerySet[User], asked: dict[str, Any]) -> None:
        for user in rights.chosen_users(request.user, users):
            before = user.tier_id
            put_on_tier(user, asked["tier"])
            self.audit(request, "changed_tier", user, {"tier": {"before": before, "after": asked["tier"].pk}})
        self.message_user(request, f"Now on the tier {asked['tier']}.", messages.SUCCESS)


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
