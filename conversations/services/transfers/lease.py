"""Who works on an export or an import: one process at a time, and another one once that has died."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from conversations.models import Export, Import
from conversations.models.transfer import TransferStatus

LEASE_SECONDS = 60
MOST_ATTEMPTS = 5
_RENEW_SECONDS = 5.0
_QUEUED_SECONDS = 30
"""What has waited for longer was perhaps never sent: the broker was away."""

type Transfer = Export | Import


class LeaseLost(Exception):
    """Another process works on it, or it is gone with its owner."""


class Lease:
    """The right to work on one transfer; its attempt fences every write.

    It renews itself over a connection of its own: the work may be inside a transaction that sees nothing new.
    """

    def __init__(self, model: type[Transfer], transfer_id: UUID, attempt: int) -> None:
        self._table = model._meta.db_table
        self._transfer_id = transfer_id
        self._attempt = attempt
        self._renewed_at = time.monotonic()

    def keep(self) -> None:
        """Call often: renews the lease when it is time. Raise `LeaseLost`."""
        if time.monotonic() - self._renewed_at < _RENEW_SECONDS:
            return
        own = connection.copy()
        try:
            with own.cursor() as cursor:
                cursor.execute(
                    f"UPDATE {self._table} SET lease_expires_at = now() + %s * interval '1 second'"  # noqa: S608
                    " WHERE id = %s AND attempts = %s AND status = 'running'",
                    [LEASE_SECONDS, self._transfer_id, self._attempt],
                )
                is_held = cursor.rowcount == 1
        finally:
            own.close()
        if not is_held:
            raise LeaseLost
        self._renewed_at = time.monotonic()


def take[T: (Export, Import)](model: type[T], transfer_id: UUID) -> T | None:
    """Begin an attempt; `None` where another process is at it, or it has ended or is gone."""
    now = timezone.now()
    taken = _to_be_taken(model, now).filter(pk=transfer_id, attempts__lt=MOST_ATTEMPTS)
    until = now + timedelta(seconds=LEASE_SECONDS)
    if not taken.update(status=TransferStatus.RUNNING, attempts=F("attempts") + 1, lease_expires_at=until):
        return None
    return model._default_manager.filter(pk=transfer_id).first()


def held(transfer: Transfer) -> QuerySet[Any]:
    """Return the row while this attempt may write it: `update` counts 0 once it may not."""
    rows = type(transfer)._default_manager.filter(pk=transfer.pk, attempts=transfer.attempts)
    return rows.filter(status=TransferStatus.RUNNING)


def put_back(transfer: Transfer) -> None:
    """Have the transfer tried once more after a while, the longer the more often it has failed."""
    not_before = timezone.now() + timedelta(seconds=10 * 2**transfer.attempts)
    held(transfer).update(status=TransferStatus.QUEUED, lease_expires_at=not_before)


def forsaken(model: type[Transfer]) -> tuple[list[UUID], list[UUID]]:
    """Return those that nobody works on: which are to be tried again, and which have been tried often enough."""
    now = timezone.now()
    idle = _to_be_taken(model, now).exclude(
        status=TransferStatus.QUEUED, created_at__gt=now - timedelta(seconds=_QUEUED_SECONDS)
    )
    rows = list(idle.order_by("created_at").values_list("pk", "attempts")[:100])
    again = [pk for pk, attempts in rows if attempts < MOST_ATTEMPTS]
    return again, [pk for pk, attempts in rows if attempts >= MOST_ATTEMPTS]


def _to_be_taken(model: type[Transfer], now: Any) -> QuerySet[Any]:
    is_free = Q(lease_expires_at=None) | Q(lease_expires_at__lte=now)
    return model._default_manager.filter(is_free, status__in=(TransferStatus.QUEUED, TransferStatus.RUNNING))
