"""What an account that is erased owes: its plan ends, all is billed, and what the law keeps is made anonymous."""

from datetime import timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.billing import closing
from accounts.erasure import audit
from accounts.erasure.stores import NotYet
from accounts.models import BillingMail, CreditNote, Invoice, Subscription, User
from foundation.background import send_after_commit

NOBODY = "Erased"
_MAIL_PATIENCE = timedelta(hours=1)
_SEND_MAILS = "accounts.tasks.send_billing_mails"


def issue_last_invoice(user_id: UUID) -> int:
    """End the plan and bill what is not billed yet, while the ledger is there; return how many invoices that made."""
    user = User.objects.filter(pk=user_id).first()
    issued = closing.close_account(user, at=timezone.now()) if user is not None else []
    if issued:
        send_after_commit(_SEND_MAILS)  # the account's address is waiting for it
    return len(issued)


def erase(user_id: UUID) -> dict[str, int]:
    """Take the customer out of invoices and credit notes, and delete what belongs to none.

    Raise `NotYet` while a mail about an invoice is owed to the customer, for an hour at most.
    """
    plans = Subscription.objects.filter(user=user_id)
    _wait_for_mails(plans)
    theirs = Invoice.objects.filter(Q(user=user_id) | Q(subscription__in=plans)).exclude(customer_name=NOBODY)
    anonymised = _anonymise(theirs)
    return {"invoices and credit notes made anonymous": anonymised, "plans": sum(map(_leave, list(plans)))}


def _wait_for_mails(plans: QuerySet[Subscription]) -> None:
    # Sent from here, they would be sent again after a rollback of this transaction.
    owed = BillingMail.objects.filter(subscription__in=plans, sent_at=None)
    if owed.filter(created_at__gt=timezone.now() - _MAIL_PATIENCE).exists():
        raise NotYet("The account's address is needed for a mail about an invoice.")


def _anonymise(invoices: QuerySet[Invoice]) -> int:
    ids = list(invoices.values_list("pk", flat=True))
    notes = CreditNote.objects.filter(invoice__in=ids)
    audit.anonymise([*ids, *notes.values_list("pk", flat=True)])
    named = Invoice.objects.filter(pk__in=ids).update(
        user=None, customer_name=NOBODY, customer_email="", stripe_invoice_id=""
    )
    return named + notes.update(reason=audit.REASON)


def _leave(plan: Subscription) -> int:
    """Delete a plan that no invoice refers to; any other is nobody's from now on."""
    audit.anonymise([plan.pk])
    BillingMail.objects.filter(subscription=plan).delete()
    if plan.invoices.exists():
        return Subscription.objects.filter(pk=plan.pk).update(user=None, stripe_subscription_id="")
    plan.closed_periods.all().delete()
    plan.delete()
    return 1
