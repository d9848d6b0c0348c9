"""Upkeep of accounts, in the background. Each task may run any number of times."""

from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.contrib.sessions.models import Session
from django.db.models import Max
from django.utils import timezone

from accounts import invitations, key_use, rollups, sanctions
from accounts.billing import closing, invoices, mails, subscriptions
from accounts.erasure import receipts, work
from accounts.erasure.stores import NotYet
from accounts.models import RequestReservation, Tier
from accounts.quotas.counting_again import count_again

log = structlog.get_logger(__name__)


@shared_task  # type: ignore[untyped-decorator]
def write_down_key_uses() -> None:
    """Write down when API keys were last used."""
    key_use.write_down()


@shared_task  # type: ignore[untyped-decorator]
def clear_expired_sessions() -> None:
    """Delete the sessions that have expired."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()


@shared_task  # type: ignore[untyped-decorator]
def end_due_suspensions() -> None:
    """Let in again whose suspension has come to its end."""
    sanctions.end_due(timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def mail_invitation(invitation_id: str) -> None:
    """Send an invitation's link."""
    invitations.mail(UUID(invitation_id))


@shared_task  # type: ignore[untyped-decorator]
def mail_owed_invitations() -> None:
    """Send the links that could not be sent, or were forgotten, before."""
    for invitation_id in invitations.owed_mails():
        mail_invitation.delay(str(invitation_id))


@shared_task  # type: ignore[untyped-decorator]
def count_reservations_again() -> None:
    """Bring what was counted while Redis was away into the windows that Redis kept."""
    now = timezone.now()
    longest_seconds = Tier.objects.aggregate(longest=Max("window_seconds"))["longest"] or 0
    RequestReservation.objects.filter(created_at__lt=now - timedelta(seconds=longest_seconds)).delete()
    count_again()


@shared_task  # type: ignore[untyped-decorator]
def roll_up_usage(days: int) -> None:
    """Bring the roll-ups of today and the days before it up to the ledger, `days` of them together."""
    rollups.roll_up_recent(days=days)


@shared_task  # type: ignore[untyped-decorator]
def take_up_erasures() -> None:
    """Go on with every erasure that is not done."""
    for erasure_id in work.take_up():
        work_on_erasure.delay(str(erasure_id))


@shared_task  # type: ignore[untyped-decorator]
def work_on_erasure(erasure_id: str) -> None:
    """Erase from each store in a task of its own: one that fails holds up no other."""
    names = work.begin(UUID(erasure_id))
    if names is None:
        return
    mail_receipt.delay(erasure_id)
    for name in names:
        erase_from_store.delay(erasure_id, name)
    _end_if_ready(erasure_id)


@shared_task  # type: ignore[untyped-decorator]
def mail_receipt(erasure_id: str) -> None:
    """Send the link of an erasure's receipt."""
    receipts.mail(UUID(erasure_id))
    _end_if_ready(erasure_id)


@shared_task  # type: ignore[untyped-decorator]
def erase_from_store(erasure_id: str, name: str) -> None:
    """Erase an account from one store, and then from those that waited for it."""
    try:
        freed = work.erase_from(UUID(erasure_id), name)
    except NotYet as reason:
        log.info("erasure_waits", erasure_id=erasure_id, store=name, reason=str(reason))
        return
    for each in freed:
        erase_from_store.delay(erasure_id, each)
    _end_if_ready(erasure_id)


@shared_task  # type: ignore[untyped-decorator]
def end_erasure(erasure_id: str) -> None:
    """Erase the account itself, once nothing else is left."""
    if not work.end(UUID(erasure_id)):
        _end_if_ready(erasure_id)


@shared_task  # type: ignore[untyped-decorator]
def delete_outlived_receipts() -> None:
    """Delete the receipts of erasures whose time is over."""
    receipts.delete_outlived()


def _end_if_ready(erasure_id: str) -> None:
    if work.is_ready_to_end(UUID(erasure_id)):
        end_erasure.delay(erasure_id)


@shared_task  # type: ignore[untyped-decorator]
def close_months() -> None:
    """Have the months that are over closed, each plan's in a task of its own: one that fails holds up no other."""
    for subscription_id in closing.due(timezone.now()):
        close_months_of.delay(str(subscription_id))


@shared_task  # type: ignore[untyped-decorator]
def close_months_of(subscription_id: str) -> None:
    """Close a plan's months that are over, with an invoice where something is to pay."""
    closing.close_months(UUID(subscription_id), timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def end_unpaid_plans() -> None:
    """Have the graces of what is overdue begin, and end the plans whose grace is over."""
    now = timezone.now()
    subscriptions.end_graces(now)
    invoices.start_graces(now)


@shared_task  # type: ignore[untyped-decorator]
def send_billing_mails() -> None:
    """Send the mails about money that are owed."""
    mails.send_owed()
