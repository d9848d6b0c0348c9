"""Mails about money: owed with what they tell of, in one transaction, and sent once that is certain."""

from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.billing import papers, pdf
from accounts.models import BillingMail, Invoice, Subscription

log = structlog.get_logger(__name__)

_SUBJECTS = {
    BillingMail.Kind.INVOICE_ISSUED: "Your invoice {number}",
    BillingMail.Kind.CREDIT_ISSUED: "A credit note for your invoice {number}",
    BillingMail.Kind.PAYMENT_FAILED: "A payment for your plan is due",
    BillingMail.Kind.PLAN_ENDED: "Your plan has ended",
}


_TRIED_FOR = timedelta(days=3)
_MOST_AT_ONCE = 300
"""As many as are printed and sent within a task's time."""


def owe(
    kind: BillingMail.Kind, subscription: Subscription, *, invoice: Invoice | None = None, **details: str
) -> BillingMail:
    """Have a mail sent to the subscription's user, if the caller's transaction is committed."""
    return BillingMail.objects.create(kind=kind, subscription=subscription, invoice=invoice, details=details)


def send_owed() -> int:
    """Send what is owed, each mail in a transaction of its own; return how many were sent.

    Whoever holds a mail's row sends it. A kill between sending and committing sends it twice, and none is left out but
    those that no server has taken for days.
    """
    owed = BillingMail.objects.filter(sent_at=None, created_at__gt=timezone.now() - _TRIED_FOR).order_by("pk")
    return sum(_send_once(mail_id) for mail_id in list(owed.values_list("pk", flat=True)[:_MOST_AT_ONCE]))


def _send_once(mail_id: int) -> bool:
    try:
        with transaction.atomic():
            owed = BillingMail.objects.select_for_update(skip_locked=True, of=("self",)).filter(sent_at=None)
            mail = owed.select_related("subscription__user", "invoice").filter(pk=mail_id).first()
            if mail is None:
                return False
            _send(mail)
            BillingMail.objects.filter(pk=mail_id).update(sent_at=timezone.now())
    except OSError as error:  # `SMTPException` is one, too; the next run tries it again
        log.warning("billing_mail_not_sent", mail_id=mail_id, error=type(error).__name__)
        return False
    return True


def _send(mail: BillingMail) -> None:
    user = mail.subscription.user
    if user is None:
        return
    context: dict[str, Any] = {
        **mail.details,
        "invoice": mail.invoice,
        "site_url": settings.SITE_URL,
        # No page opens to an account that is closed: its last invoice is in the mail alone.
        "has_pages": user.is_active,
        "is_collected_by_stripe": mail.subscription.is_collected_by_stripe,
    }
    subject = _SUBJECTS[BillingMail.Kind(mail.kind)].format(number=mail.invoice.number if mail.invoice else "")
    text = render_to_string(f"invoices/mails/{mail.kind}.txt", context)
    message = EmailMessage(subject, text, None, [user.email])
    if mail.kind == BillingMail.Kind.INVOICE_ISSUED and mail.invoice is not None:
        paper = papers.invoice_paper(mail.invoice)
        message.attach(paper.file_name, pdf.print_paper(paper), "application/pdf")
    message.send()
    log.info("billing_mail_sent", kind=mail.kind, subscription_id=str(mail.subscription_id))
