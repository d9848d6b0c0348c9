"""What a month's invoice asks of a customer of Stripe's: put on Stripe's next bill, once, and no more than is left."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.utils import timezone
from stripe import InvalidRequestError, InvoiceItem, InvoiceLineItem

from accounts.billing import invoices
from accounts.models import Invoice, StripeCustomer, Subscription
from accounts.stripe.client import asking, is_missing, metadata_of, stripe_client

_INVOICE_ID = "invoice_id"
_ADDED_BEFORE = timedelta(days=1)


def pending() -> Iterator[UUID]:
    """Yield the invoices that Stripe is to collect and does not know of yet."""
    unpaid = Invoice.objects.filter(
        status=Invoice.Status.OPEN, stripe_invoice_id="", subscription__provider=Subscription.Provider.STRIPE
    )
    return unpaid.exclude(subscription__status=Subscription.Status.ENDED).values_list("pk", flat=True).iterator()


def being_collected() -> Iterator[UUID]:
    """Yield the invoices that Stripe knows of and that are not paid yet."""
    unpaid = Invoice.objects.filter(status=Invoice.Status.OPEN).exclude(stripe_invoice_id="")
    return unpaid.values_list("pk", flat=True).iterator()


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
    if item.amount != _cents_due(invoice.pk):
        follow(invoice.pk)  # it was paid or credited meanwhile


def follow(invoice_id: UUID) -> None:
    """Have what Stripe collects be what is left of an invoice, and note it as paid once Stripe has been.

    It collects nothing any more for a plan that has ended: no bill would come. What is on a bill that the customer was
    sent is not changed any more. Raise `PaymentProviderUnavailable`.
    """
    invoice = Invoice.objects.filter(pk=invoice_id).exclude(stripe_invoice_id="").first()
    if invoice is None:
        return
    with asking("invoice_items.retrieve"):
        item = _retrieved(invoice.stripe_invoice_id)
        bill = stripe_client().v1.invoices.retrieve(str(item.invoice)) if item and item.invoice else None
        if bill is None or bill.status == "draft":
            _correct(invoice.pk, item, _cents_due(invoice.pk))
    if bill is not None and bill.status == "paid":
        _note_paid([invoice.pk])


def note_paid(stripe_invoice_id: str) -> None:
    """Mark as paid the invoices that a paid bill of Stripe's holds. Raise `PaymentProviderUnavailable`."""
    with asking("invoices.line_items.list"):
        lines = stripe_client().v1.invoices.line_items.list(stripe_invoice_id, {"limit": 100})
        paid = [invoice_id for line in lines.auto_paging_iter() if (invoice_id := _invoice_id_on(line)) is not None]
    _note_paid(paid)


def _note_paid(invoice_ids: list[UUID]) -> None:
    # One that was credited in full after it had been pushed stays so.
    for invoice in Invoice.objects.filter(pk__in=invoice_ids, status=Invoice.Status.OPEN):
        invoices.mark_paid(invoice, at=timezone.now())


def _is_collected(invoice: Invoice) -> bool:
    return invoice.status == Invoice.Status.OPEN and invoice.subscription.is_collected_by_stripe


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
            "amount": _cents_due(invoice.pk),
            "currency": invoice.currency.lower(),
            "description": f"Invoice {invoice.number}",
            "metadata": {_INVOICE_ID: str(invoice.pk)},
        },
        {"idempotency_key": f"invoice-{invoice.pk}"},
    )


def _retrieved(item_id: str) -> InvoiceItem | None:
    try:
        return stripe_client().v1.invoice_items.retrieve(item_id)
    except InvalidRequestError as error:
        if not is_missing(error):
            raise
        return None  # it was taken back


def _correct(invoice_id: UUID, item: InvoiceItem | None, cents: int) -> None:
    items = stripe_client().v1.invoice_items
    if item is not None and cents and cents != item.amount:
        items.update(item.id, {"amount": cents})
    if item is not None and not cents:
        items.delete(item.id)
    if item is None or not cents:
        # Not there any more: should Stripe collect for the plan again, it is pushed again.
        Invoice.objects.filter(pk=invoice_id, status=Invoice.Status.OPEN).update(stripe_invoice_id="")


def _cents_due(invoice_id: UUID) -> int:
    invoice = Invoice.objects.select_related("subscription").get(pk=invoice_id)
    due = invoices.left_of(invoice) if _is_collected(invoice) else Decimal(0)
    return int(due * 100)
