"""What an account's page shows beside the account: to be read, and acted on in its own place."""

from allauth.usersessions.models import UserSession
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.models import APIKey, Invoice, Sanction, Subscription, User
from foundation.read_only_admin import ReadOnlyInline


class Panel(ReadOnlyInline):
    """Rows of a user's, each with a link to its own page."""

    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        return [str(name) for name in self.fields or ()]


class SanctionPanel(Panel):
    model = Sanction
    fk_name = "user"
    fields = ("kind", "reason", "imposed_by", "created_at", "ends_at", "lifted_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Sanction]:
        return super().get_queryset(request).select_related("imposed_by")


class KeyPanel(Panel):
    model = APIKey
    fields = ("prefix", "name", "scopes", "last_used_at", "expires_at", "revoked_at")


class SessionPanel(Panel):
    model = UserSession
    fields = ("created_at", "last_seen_at", "ip", "user_agent")


class SubscriptionPanel(Panel):
    model = Subscription
    fields = ("tier", "status", "provider", "grace_until", "created_at")


class InvoicePanel(Panel):
    model = Invoice
    fields = ("number", "period_start", "total", "currency", "status", "due_at", "paid_at")


PANELS = (SanctionPanel, SubscriptionPanel, KeyPanel, SessionPanel, InvoicePanel)
