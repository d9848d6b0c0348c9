"""Subscriptions, invoices, credit notes and Stripe's events in the admin. What was issued is paid or credited."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format

from accounts.billing.invoices import credit, mark_paid
from accounts.billing.money import shown
from accounts.exceptions import InvalidRequest
from accounts.models import CreditNote, Invoice, InvoiceLine, PlanSpan, StripeEvent, Subscription, User
from foundation.audited_admin import WhyForm, asks_why
from foundation.read_only_admin import ActedOnAdmin, ReadOnlyAdmin, ReadOnlyInline


class LineInline(ReadOnlyInline):
    model = InvoiceLine


class CreditInline(ReadOnlyInline):
    model = CreditNote


class SpanInline(ReadOnlyInline):
    model = PlanSpan


class CreditForm(WhyForm):
    """How much is given back."""

    amount = forms.DecimalField(min_value=Decimal("0.01"), decimal_places=2, max_digits=12)
    told = forms.CharField(label="What the credit note says as the reason", max_length=2_000)
    field_order = ("amount", "told", "why")


@admin.register(Invoice)
class InvoiceAdmin(ActedOnAdmin):
    """An invoice is never changed: it is marked as paid, or credited."""

    list_display = ("number", "customer_email", "month", "amount", "status", "due", "paid")
    list_filter = ("status", "currency")
    search_fields = ("number", "customer_email", "user__email")
    date_hierarchy = "issued_at"
    inlines = (LineInline, CreditInline)
    actions = ("mark_as_paid", "credit_it")

    @admin.display(ordering="period_start")
    def month(self, invoice: Invoice) -> str:
        return date_format(invoice.period_start, "F Y")

    @admin.display(ordering="total")
    def amount(self, invoice: Invoice) -> str:
        return shown(invoice.total, invoice.currency)

    @admin.display(ordering="due_at")
    def due(self, invoice: Invoice) -> str:
        return date_format(invoice.due_at, "j M Y")

    @admin.display(ordering="paid_at")
    def paid(self, invoice: Invoice) -> str:
        return date_format(invoice.paid_at, "j M Y") if invoice.paid_at else ""

    @asks_why("Mark as paid", permissions=["act"])
    def mark_as_paid(self, request: HttpRequest, invoices: QuerySet[Invoice], asked: dict[str, Any]) -> None:
        for invoice in invoices:
            before = invoice.status
            mark_paid(invoice, at=timezone.now())
            if invoice.status != before:
                self.audit(request, "marked_paid", invoice, {"status": {"before": before, "after": invoice.status}})
        self.message_user(request, "Marked as paid.", messages.SUCCESS)

    @asks_why("Credit", permissions=["act"], form=CreditForm)
    def credit_it(self, request: HttpRequest, invoices: QuerySet[Invoice], asked: dict[str, Any]) -> None:
        invoice, *others = list(invoices)
        if others:
            raise InvalidRequest("Credit one invoice at a time.")
        assert isinstance(request.user, User)
        note = credit(invoice, asked["amount"], reason=asked["told"], by=request.user)
        changes = {
            "credited": {"before": None, "after": str(note.amount)},
            "note": {"before": None, "after": str(note)},
        }
        self.audit(request, "credited", invoice, changes)
        self.message_user(request, f"Credited by {note}.", messages.SUCCESS)


@admin.register(CreditNote)
class CreditNoteAdmin(ReadOnlyAdmin):
    """Made on the invoice that they credit."""

    list_display = ("number", "invoice", "amount", "reason", "created_by", "created_at")
    list_select_related = ("invoice", "created_by")


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    """Who is on which plan; it is changed on the list of users."""

    list_display = ("user", "tier", "status", "provider", "grace_until", "created_at")
    list_select_related = ("user", "tier")
    list_filter = ("status", "provider", "tier")
    search_fields = ("user__email", "=stripe_subscription_id")
    inlines = (SpanInline,)


@admin.register(StripeEvent)
class StripeEventAdmin(ReadOnlyAdmin):
    """Which events of Stripe's were dealt with."""

    list_display = ("event_id", "type", "created_at", "received_at")
    list_filter = ("type",)
    search_fields = ("=event_id",)
