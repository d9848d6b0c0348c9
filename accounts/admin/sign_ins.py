"""How people sign in, in the admin: sessions, addresses, second factors, other providers' accounts. No secrets."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts.admin.rights import may_act_on
from accounts.credentials import announce_revocation
from accounts.exceptions import Forbidden
from foundation.audited_admin import asks_why
from foundation.read_only_admin import ActedOnAdmin

for _model in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken, UserSession):
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)  # providers are set up in the settings, and their tokens are not for staff


class SignInAdmin(ActedOnAdmin):
    """Something of a user's that begins where they sign in; staff can end it."""

    list_select_related = ("user",)
    search_fields = ("user__email",)
    actions = ("end",)

    @asks_why("End or remove", permissions=["act"])
    def end(self, request: HttpRequest, rows: QuerySet[Any], asked: dict[str, Any]) -> None:
        for row in chosen_rows(request, rows):
            self.audit(request, "ended", row, {"user": {"before": str(row.user_id), "after": None}})
            _end(row)
        self.message_user(request, "Ended.", messages.SUCCESS)


@admin.register(UserSession)
class SessionAdmin(SignInAdmin):
    """Sessions begin by signing in."""

    list_display = ("user", "created_at", "last_seen_at", "ip", "user_agent")
    search_help_text = "An email address."
    fields = ("user", "created_at", "last_seen_at", "ip", "user_agent")


@admin.register(Authenticator)
class SecondFactorAdmin(SignInAdmin):
    """A second factor that was lost is removed; its owner sets up another."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    fields = ("user", "type", "created_at", "last_used_at")


@admin.register(SocialAccount)
class SocialAccountAdmin(SignInAdmin):
    """Whom another provider says somebody is."""

    list_display = ("user", "provider", "uid", "date_joined", "last_login")
    list_filter = ("provider",)
    fields = ("user", "provider", "uid", "date_joined", "last_login")


@admin.register(EmailAddress)
class AddressAdmin(ActedOnAdmin):
    """Addresses, which staff may vouch for."""

    list_display = ("email", "user", "primary", "verified")
    list_filter = ("primary", "verified")
    list_select_related = ("user",)
    search_fields = ("email", "user__email")
    actions = ("vouch",)

    @asks_why("Vouch for the address: it counts as confirmed", permissions=["act"])
    def vouch(self, request: HttpRequest, rows: QuerySet[EmailAddress], asked: dict[str, Any]) -> None:
        for address in chosen_rows(request, rows.filter(verified=False)):
            if not address.set_verified():
                raise Forbidden(f"Another account has confirmed {address.email}.")
            self.audit(request, "vouched_for", address, {"verified": {"before": False, "after": True}})
        self.message_user(request, "Confirmed.", messages.SUCCESS)


def chosen_rows(request: HttpRequest, rows: QuerySet[Any]) -> list[Any]:
    """Return the rows that an action was asked for; refuse all where one is of a member of staff's."""
    chosen = list(rows.select_related("user"))
    if any(not may_act_on(request.user, row.user) for row in chosen):
        raise Forbidden("Only superusers act on how staff sign in.")
    return chosen


def _end(row: Model) -> None:
    if isinstance(row, UserSession):
        row.end()
        return
    user_id = row.user_id  # type: ignore[attr-defined]
    row.delete()
    announce_revocation(user_id)
