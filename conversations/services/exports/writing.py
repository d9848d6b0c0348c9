"""Writes an export: one consistent view of all that a user has, streamed into a file that is there whole or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from conversations.models import Export
from conversations.models.transfer import TransferStatus
from conversations.services.exports.archive import write_archive
from conversations.services.transfers import files, lease
from conversations.services.transfers.lease import Lease, LeaseLost

log = structlog.get_logger(__name__)

MOST_KEPT = 3
"""How many files a user's exports may hold; the oldest give way."""
_TRIED_OFTEN_ENOUGH = "The export could not be written. Nothing is lost; ask for another one later."


def write(export_id: UUID) -> None:
    """Write the file of an export that nobody else is writing. What fails is tried again, a few times."""
    export = lease.take(Export, export_id)
    if export is None:
        return
    name = files.new_name(".zip")
    try:
        _write_file(export, name)
    except LeaseLost:
        log.warning("export_given_up", export_id=str(export_id))
    except (OSError, DatabaseError) as error:
        log.warning("export_failed", export_id=str(export_id), error=type(error).__name__, attempt=export.attempts)
        if export.attempts >= lease.MOST_ATTEMPTS:
            fail(export_id)
        else:
            lease.put_back(export)
    else:
        _finish(export, name)


def fail(export_id: UUID) -> None:
    """Give an export up, and say so."""
    under_way = Export.objects.filter(pk=export_id, status__in=(TransferStatus.QUEUED, TransferStatus.RUNNING))
    under_way.update(status=TransferStatus.FAILED, error_message=_TRIED_OFTEN_ENOUGH, expires_at=_end_of_keeping())


def delete_expired() -> int:
    """Delete the exports whose time is over, with their files; return how many."""
    expired = list(Export.objects.filter(expires_at__lte=timezone.now()))
    return sum(_delete(export) for export in expired)


def erase(user_id: UUID) -> int:
    """Delete all exports of a user, with their files; return how many. Whoever writes one finds its row gone."""
    return sum(_delete(export) for export in Export.objects.filter(user_id=user_id))


@contextmanager
def snapshot() -> Iterator[None]:
    """Have all that is read in the block be as it was at the block's first query."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _write_file(export: Export, name: str) -> None:
    held = Lease(Export, export.pk, export.attempts)
    with files.new_file(files.EXPORTS, name) as file, snapshot():
        write_archive(file, export.user, keep_lease=held.keep)


def _finish(export: Export, name: str) -> None:
    byte_count = files.path_of(files.EXPORTS, name).stat().st_size
    is_ours = lease.held(export).update(
        status=TransferStatus.DONE,
        file=name,
        byte_count=byte_count,
        expires_at=_end_of_keeping(),
        lease_expires_at=None,
    )
    if not is_ours:
        files.delete(files.EXPORTS, name)
        return
    log.info("export_written", export_id=str(export.pk), bytes=byte_count)
    for older in Export.objects.filter(user_id=export.user_id, status=TransferStatus.DONE).order_by("-pk")[MOST_KEPT:]:
        _delete(older)


def _delete(export: Export) -> int:
    # The file first: a row without one is still found, a file without its row is not.
    files.delete(files.EXPORTS, export.file)
    return Export.objects.filter(pk=export.pk).delete()[0]


def _end_of_keeping() -> datetime:
    return timezone.now() + timedelta(days=settings.EXPORT_KEEP_DAYS)
