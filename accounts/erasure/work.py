"""The steps of an erasure. Each is a transaction, and may be taken any number of times, by any number at once."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.erasure import progress
from accounts.erasure.stores import Store, all_stores, store_named
from accounts.metrics import OVERDUE_ERASURES
from accounts.models import Erasure, User

log = structlog.get_logger(__name__)

ACCOUNT = "account"
"""What is erased last: the row that everything else refers to."""
_MAIL_PATIENCE = timedelta(hours=1)
"""How long the account's address is kept for a mail that cannot be sent."""
_LONG = timedelta(hours=1)


def begin(erasure_id: UUID) -> list[str] | None:
    """Return the names of the stores to erase from now; `None` where the erasure is done."""
    if not Erasure.objects.filter(pk=erasure_id, completed_at=None).update(attempts=F("attempts") + 1):
        return None
    return [store.name for store in progress.ready_stores(Erasure.objects.get(pk=erasure_id))]


def erase_from(erasure_id: UUID, name: str) -> list[str]:
    """Erase the account from one store; return the names of those that have waited for it."""
    store = store_named(name)
    if store is None:
        return []
    while _erase_a_part(erasure_id, store):
        pass
    left = progress.ready_stores(Erasure.objects.get(pk=erasure_id))
    return [each.name for each in left if name in each.after]


def is_ready_to_end(erasure_id: UUID) -> bool:
    """Say whether every store is done, and the receipt's link sent."""
    erasure = Erasure.objects.get(pk=erasure_id)
    return erasure.completed_at is None and _is_ready_to_end(erasure)


@transaction.atomic
def end(erasure_id: UUID) -> bool:
    """Erase the account itself; say whether nothing remains to be done.

    Its row is locked first: a transaction that was under way when the account was closed has either committed, and what
    it wrote is erased now, or its commit fails. Where something was found, the look is to be taken once more.
    """
    erasure = Erasure.objects.select_for_update().get(pk=erasure_id)
    if erasure.user_id is None:
        return True
    if not _is_ready_to_end(erasure):
        return False
    user = User.objects.select_for_update().filter(pk=erasure.user_id).first()
    if user is not None:
        if _erase_what_came_late(erasure, user):
            return False
        _erase_account(erasure, user)
    erasure.user_id, erasure.completed_at = None, timezone.now()
    erasure.save(update_fields=["user_id", "completed_at"])
    log.info("account_erased", erasure_id=str(erasure_id), attempts=erasure.attempts)
    return True


def take_up() -> list[UUID]:
    """Return the erasures that are not done, and tell of those that take long."""
    now = timezone.now()
    unfinished = list(Erasure.objects.filter(completed_at=None).order_by("requested_at"))
    late = [erasure for erasure in unfinished if erasure.requested_at < now - _LONG]
    OVERDUE_ERASURES.set(len(late))
    for erasure in late:
        waits_for = [store.name for store in progress.ready_stores(erasure)]
        log.warning("erasure_takes_long", erasure_id=str(erasure.pk), attempts=erasure.attempts, waits_for=waits_for)
    return [erasure.pk for erasure in unfinished]


@transaction.atomic
def _erase_a_part(erasure_id: UUID, store: Store) -> bool:
    """Erase what the store erases in one go, and count it in the same transaction; say whether there was anything."""
    erasure = Erasure.objects.select_for_update().get(pk=erasure_id)
    if erasure.user_id is None or store.name in progress.done_names(erasure):
        return False
    return bool(progress.note(erasure, store.name, store.erase(erasure.user_id)))


def _is_ready_to_end(erasure: Erasure) -> bool:
    is_erased = {store.name for store in all_stores()} <= progress.done_names(erasure)
    has_waited = erasure.requested_at < timezone.now() - _MAIL_PATIENCE
    return is_erased and (erasure.mailed_at is not None or has_waited)


def _erase_what_came_late(erasure: Erasure, user: User) -> int:
    return sum(progress.note(erasure, store.name, store.erase(user.pk)) for store in all_stores())


def _erase_account(erasure: Erasure, user: User) -> None:
    """Delete the row. Whatever refers to it and has no store of its own goes with it, and is counted by its table."""
    _, counts = user.delete()
    accounts = counts.pop(User._meta.label, 0)
    for name, count in [*sorted(counts.items()), (ACCOUNT, accounts)]:
        progress.note(erasure, name, count)
        progress.note(erasure, name, 0)
