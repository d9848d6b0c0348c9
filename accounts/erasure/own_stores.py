"""The stores of this app and of those that it signs people in with."""

from collections.abc import Iterator
from uuid import UUID

from django.apps import apps
from django.db.models import Model, QuerySet

from accounts.erasure import audit, billing, rate_limits, sessions
from accounts.erasure.stores import register
from accounts.models import (
    APIKey,
    DailyUsage,
    Invitation,
    RequestReservation,
    Sanction,
    TokenBudget,
    TokenReservation,
    UsageRecord,
    User,
)

_LEDGER = (TokenReservation, UsageRecord, TokenBudget, DailyUsage, RequestReservation)
CONVERSATIONS = "conversations"
"""The store whose end comes first: it writes what answers have used, which is then billed, and then erased."""


def register_all() -> None:
    """Make this app's stores known."""
    register("logs of staff", audit.erase_from_logs)
    register(sessions.NAME, sessions.end_all)
    register("API keys", _erase_keys, after=["logs of staff"])
    register("sanctions", _erase_sanctions, after=["logs of staff"])
    register("invitations", _erase_invitations)
    register("ways to sign in", _erase_ways_to_sign_in, after=[sessions.NAME, "invitations", "logs of staff"])
    register("rate limits", rate_limits.erase)
    register("last invoices", billing.issue_last_invoice, after=[CONVERSATIONS])
    register("billing", billing.erase, after=["last invoices"])
    register("usage", _erase_usage, after=[CONVERSATIONS, "last invoices"])


def _erase_keys(user_id: UUID) -> int:
    return _erase_audited(APIKey.objects.filter(user=user_id))


def _erase_sanctions(user_id: UUID) -> int:
    return _erase_audited(Sanction.objects.filter(user=user_id))


def _erase_audited(rows: "QuerySet[APIKey] | QuerySet[Sanction]") -> int:
    audit.anonymise(rows.values_list("pk", flat=True))
    return rows.delete()[0]


def _erase_invitations(user_id: UUID) -> dict[str, int]:
    """Delete those for the account's address; those that it made for others are theirs, and name it no more."""
    email = User.objects.filter(pk=user_id).values("email")
    return {
        "to the account's address": Invitation.objects.filter(email__in=email).delete()[0],
        "made by the account, now nobody's": Invitation.objects.filter(invited_by=user_id).update(invited_by=None),
    }


def _erase_ways_to_sign_in(user_id: UUID) -> dict[str, int]:
    """Delete email addresses, second factors, accounts elsewhere, and where it is signed in."""
    counts: dict[str, int] = {}
    for model in _models_of_sign_in():
        name = str(model._meta.verbose_name_plural)
        counts[name] = model._default_manager.filter(user=user_id).delete()[0]
    return counts


def _models_of_sign_in() -> Iterator[type[Model]]:
    for model in apps.get_models():
        if model.__module__.startswith("allauth.") and any(f.related_model is User for f in model._meta.fields):
            yield model


def _erase_usage(user_id: UUID) -> dict[str, int]:
    audit.anonymise(UsageRecord.objects.filter(user=user_id).values_list("pk", flat=True))
    counts: dict[str, int] = {}
    for model in _LEDGER:
        counts[str(model._meta.verbose_name_plural)] = model._default_manager.filter(user=user_id).delete()[0]
    return counts
