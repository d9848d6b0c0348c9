"""What a month's invoice asks of a customer of Stripe's: put on Stripe's next bill, once."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.utils import timezone
from stripe import InvoiceItem, InvoiceLineItem

from accounts.billing import invoices
from accounts.models import Invoice, StripeCustomer, Subscription
from accounts.stripe.client import asking, metadata_of, stripe_client

_INVOICE_ID = "invoice_id"
_ADDED_BEFORE = timedelta(days=1)


def pending() -> Iterator[UUID]:
    """Yield the invoices that Stripe is to collect and does not know of yet."""
    unpaid = Invoice.objects.filter(
        status=Invoice.Status.OPEN, stripe_invoice_id="", subscription__provider=Subscription.Provider.STRIPE
    )
    return unpaid.exclude(subscription__status=Subscription.Status.ENDED).values_list("pk", flat=True).iterator()


def push(invoice_id: UUID) -> None:
    """Add an invoice to what Stripe collects next, unless it is there. Raise `PaymentProviderUnavailable`.

    Stripe forgets idempotency keys after a day: what an earlier try may have added is looked for first.
    """
    invoice = Invoice.objects.select_related("subscription").filter(pk=invoice_id, stripe_invoice_id="").first()
    if invoice is None or not _is_collected(invoice):
        return
    customer = StripeCustomer.objects.filter(user__invoices=invoice).first()
    if customer is None:
        return
    with asking("invoice_items.create"):
        item = _item_of(invoice, customer.customer_id) or _add(invoice, customer.customer_id)
    Invoice.objects.filter(pk=invoice.pk, stripe_invoice_id="").update(stripe_invoice_id=item.id)


def note_paid(stripe_invoice_id: str) -> None:
    """Mark as paid the invoices that a paid bill of Stripe's holds. Raise `PaymentProviderUnavailable`."""
    with asking("invoices.line_items.list"):
        lines = stripe_client().v1.invoices.line_items.list(stripe_invoice_id, {"limit": 100})
        paid = [invoice_id for line in lines.auto_paging_iter() if (invoice_id := _invoice_id_on(line)) is not None]
    # One that was credited in full after it had been pushed stays so.
    for invoice in Invoice.objects.filter(pk__in=paid).exclude(status=Invoice.Status.CREDITED):
        invoices.mark_paid(invoice, at=timezone.now())


def _is_collected(invoice: Invoice) -> bool:
    subscription = invoice.subscription
    is_live = subscription.status != Subscription.Status.ENDED
    return invoice.status == Invoice.Status.OPEN and is_live and subscription.provider == Subscription.Provider.STRIPE


def _invoice_id_on(line: InvoiceLineItem) -> UUID | None:
    try:
        return UUID(metadata_of(line).get(_INVOICE_ID, ""))
    except ValueError:  # none, or not one of ours
        return None


def _item_of(invoice: Invoice, customer: str) -> InvoiceItem | None:
    since = int((invoice.issued_at - _ADDED_BEFORE).timestamp())
    found = stripe_client().v1.invoice_items.list({"customer": customer, "created": {"gte": since}, "limit": 100})
    for item in found.auto_paging_iter():
        if metadata_of(item).get(_INVOICE_ID) == str(invoice.pk):
            return item
    return None


def _add(invoice: Invoice, customer: str) -> InvoiceItem:
    return stripe_client().v1.invoice_items.create(
        {
            "customer": customer,
            "amount": _in_cents(invoice.total),
            "currency": invoice.currency.lower(),
            "description": f"Invoice {invoice.number}",
            "metadata": {_INVOICE_ID: str(invoice.pk)},
        },
        {"idempotency_key": f"invoice-{invoice.pk}"},
    )


def _in_cents(amount: Decimal) -> int:
    return int(amount * 100)
