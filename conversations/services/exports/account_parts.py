"""What an export holds beside conversations: memories, preferences, usage and the account."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from allauth.account.models import EmailAddress
from django.db.models import F

from accounts.models import APIKey, CreditNote, Invoice, InvoiceLine, Subscription, UsageRecord, User
from accounts.pricing import exact
from conversations.models import Memory
from conversations.services.exports import json_text
from conversations.services.preferences import preference_of

_ROWS_AT_ONCE = 1_000
_USAGE_FIELDS = (
    "generation_id",
    "conversation_id",
    "model",
    "model_version",
    "day",
    "tokens_in",
    "tokens_cached",
    "tokens_out",
    "cost",
    "created_at",
)
_MEMORY_FIELDS = (
    "content",
    "origin",
    "enabled",
    "conversation_id",
    "message_id",
    "created_at",
    "updated_at",
    "confirmed_at",
    "reviewed_at",
    "expires_at",
)
_KEY_FIELDS = ("name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
_INVOICE_FIELDS = (
    "number",
    "customer_name",
    "customer_email",
    "period_start",
    "period_end",
    "currency",
    "total",
    "status",
    "issued_at",
    "due_at",
    "paid_at",
)


def memories(user: User) -> Iterator[str]:
    """Yield what is remembered of the user, and what is only proposed."""
    rows = Memory.objects.owned_by(user.pk).order_by("pk").values(*_MEMORY_FIELDS, memory_id=F("pk"))
    return json_text.array(map(json_text.text, rows))


def preferences(user: User) -> Iterator[str]:
    """Yield what the user wants of every conversation."""
    preference = preference_of(user.pk)
    return json_text.document({"instructions": preference.instructions, "uses_memories": preference.uses_memories})


def usage_json(user: User) -> Iterator[str]:
    """Yield the ledger's records."""
    return json_text.array(map(json_text.text, _usage(user)))


def usage_csv(user: User) -> Iterator[str]:
    """Yield the same as a table."""
    yield _csv_line(_USAGE_FIELDS)
    for row in _usage(user):
        yield _csv_line([row[name] for name in _USAGE_FIELDS])


def account(user: User) -> Iterator[str]:
    """Yield who the user is here."""
    addresses = EmailAddress.objects.filter(user=user).order_by("pk").values("email", "verified", "primary")
    plan = Subscription.objects.filter(user=user).first()
    return json_text.document(
        {
            "account_id": user.pk,
            "email": user.email,
            "email_addresses": list(addresses),
            "name": user.name,
            "tier": user.tier_id,
            "time_zone": user.time_zone or "UTC",
            "date_joined": user.date_joined,
            "last_login": user.last_login,
            "subscription": plan
            and {"tier": plan.tier_id, "status": plan.status, "provider": plan.provider, "since": plan.created_at},
        }
    )


def api_keys(user: User) -> Iterator[str]:
    """Yield the keys, never what they are."""
    rows = APIKey.objects.filter(user=user).order_by("pk").values(*_KEY_FIELDS, api_key_id=F("pk"))
    return json_text.document(list(rows))


def invoices(user: User) -> Iterator[str]:
    """Yield the invoices, with their lines and what was credited."""
    return json_text.array(_invoice(invoice) for invoice in Invoice.objects.filter(user=user).order_by("pk"))


def _invoice(invoice: Invoice) -> str:
    lines = InvoiceLine.objects.filter(invoice=invoice).order_by("position").values("description", "amount")
    notes = CreditNote.objects.filter(invoice=invoice).order_by("pk").values("number", "amount", "reason", "created_at")
    fields = {name: getattr(invoice, name) for name in _INVOICE_FIELDS}
    return json_text.text(fields | {"lines": list(lines), "credit_notes": list(notes)})


def _usage(user: User) -> Iterator[dict[str, Any]]:
    rows = UsageRecord.objects.filter(user=user).order_by("created_at", "pk").values(*_USAGE_FIELDS)
    for row in rows.iterator(chunk_size=_ROWS_AT_ONCE):
        yield row | {"cost": exact(row["cost"])}


def _csv_line(values: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()
