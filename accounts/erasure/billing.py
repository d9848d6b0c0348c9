"""What is owed by an account that is erased: the plan ends, and what the law keeps is made anonymous."""

from uuid import UUID

from django.db.models import Q, QuerySet

from accounts.billing import subscriptions
from accounts.erasure import audit
from accounts.models import BillingMail, CreditNote, Invoice, Subscription

NOBODY = "Erased"


def erase(user_id: UUID) -> dict[str, int]:
    """End the plan; take the customer out of invoices and credit notes; delete what belongs to none."""
    subscriptions_of_user = list(Subscription.objects.filter(user=user_id))
    for subscription in subscriptions_of_user:
        _end(subscription)
    is_theirs = Q(user=user_id) | Q(subscription__in=subscriptions_of_user)
    named = Invoice.objects.filter(is_theirs).exclude(customer_name=NOBODY)
    return {"plans": len(subscriptions_of_user), "invoices and credit notes made anonymous": _anonymise(named)}


def _end(subscription: Subscription) -> None:
    subscriptions.end(subscription)
    BillingMail.objects.filter(subscription=subscription).delete()
    audit.anonymise([subscription.pk])
    if not subscription.invoices.exists():
        subscription.closed_periods.all().delete()
        subscription.delete()
        return
    Subscription.objects.filter(pk=subscription.pk).update(user=None, stripe_subscription_id="")


def _anonymise(invoices: QuerySet[Invoice]) -> int:
    ids = list(invoices.values_list("pk", flat=True))
    notes = CreditNote.objects.filter(invoice__in=ids)
    audit.anonymise([*ids, *notes.values_list("pk", flat=True)])
    named = invoices.update(user=None, customer_name=NOBODY, customer_email="", stripe_invoice_id="")
    return named + notes.update(reason=audit.REASON)
