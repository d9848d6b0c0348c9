"""What an account's page shows beside the account: to be read, and acted on in its own place."""

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import APIKey, Invoice, Sanction, Subscription, User
from foundation.read_only_admin import ReadOnlyInline


def good_sessions(sessions: QuerySet[UserSession]) -> QuerySet[UserSession]:
    """Leave out those that have ended: they are forgotten only when their owner looks at the list."""
    good = Session.objects.filter(expire_date__gt=timezone.now())
    return sessions.filter(session_key__in=good.values("session_key"))


class Panel(ReadOnlyInline):
    """Rows of a user's, each under its name with a link to its own page."""

    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        return [str(name) for name in self.fields or ()]


class SanctionPanel(Panel):
    model = Sanction
    fk_name = "user"
    fields = ("reason", "imposed_by", "ends_at", "lifted_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Sanction]:
        return super().get_queryset(request).select_related("imposed_by")


class KeyPanel(Panel):
    model = APIKey
    fields = ("name", "scopes", "last_used_at", "expires_at", "revoked_at")


class SessionPanel(Panel):
    model = UserSession
    verbose_name_plural = "sessions"
    fields = ("created_at", "last_seen_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserSession]:
        return good_sessions(super().get_queryset(request))


class SubscriptionPanel(Panel):
    model = Subscription
    fields = ("provider", "grace_until", "created_at")


class InvoicePanel(Panel):
    model = Invoice
    fields = ("total", "currency", "status", "due_at", "paid_at")


PANELS = (SanctionPanel, SubscriptionPanel, KeyPanel, SessionPanel, InvoicePanel)
