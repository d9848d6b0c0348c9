"""Brings in what an uploaded file holds. The file is looked through first: of a damaged one nothing is imported."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import structlog
from django.db import DatabaseError

from conversations.models import Import
from conversations.models.transfer import TransferStatus
from conversations.services.imports.containers import documents
from conversations.services.imports.documents import Refused, conversations
from conversations.services.imports.faults import RefusedConversation, UnreadableFile
from conversations.services.imports.incoming import Incoming
from conversations.services.imports.reports import Report
from conversations.services.imports.storing import store
from conversations.services.transfers import files, lease
from conversations.services.transfers.lease import Lease, LeaseLost

log = structlog.get_logger(__name__)

MOST_CONVERSATIONS = 200_000
_TELL_SECONDS = 1.0
_TRIED_OFTEN_ENOUGH = "The import was interrupted too often. What is listed was imported; upload the file once more."
_FILE_IS_GONE = "The uploaded file is gone. Upload it once more."


def read(import_id: UUID) -> None:
    """Import a file that nobody else is importing. What was brought before an interruption is not brought again."""
    bringing = lease.take(Import, import_id)
    if bringing is None:
        return
    report = Report()
    try:
        _read_file(bringing, report)
    except LeaseLost:
        log.warning("import_given_up", import_id=str(import_id))
    except UnreadableFile as error:
        _end(bringing, report, TransferStatus.FAILED, str(error))
    except FileNotFoundError:
        _end(bringing, report, TransferStatus.FAILED, _FILE_IS_GONE)
    except (OSError, DatabaseError) as error:
        log.warning("import_failed", import_id=str(import_id), error=type(error).__name__, attempt=bringing.attempts)
        if bringing.attempts >= lease.MOST_ATTEMPTS:
            _end(bringing, report, TransferStatus.FAILED, _TRIED_OFTEN_ENOUGH)
        else:
            lease.put_back(bringing)
    else:
        _end(bringing, report, TransferStatus.DONE)


def fail(import_id: UUID) -> None:
    """Give an import up, and say so."""
    under_way = Import.objects.filter(pk=import_id, status__in=(TransferStatus.QUEUED, TransferStatus.RUNNING))
    for bringing in under_way:
        report = bringing.report or Report().as_json()
        if under_way.update(status=TransferStatus.FAILED, report=report | {"error": _TRIED_OFTEN_ENOUGH}, file=""):
            files.delete(files.IMPORTS, bringing.file)


def erase(user_id: UUID) -> int:
    """Delete all imports of a user, with their files; return how many."""
    return sum(_delete(each) for each in Import.objects.filter(user_id=user_id))


def _delete(bringing: Import) -> int:
    files.delete(files.IMPORTS, bringing.file)
    return Import.objects.filter(pk=bringing.pk).delete()[0]


def _read_file(bringing: Import, report: Report) -> None:
    held = Lease(Import, bringing.pk, bringing.attempts)
    path = files.path_of(files.IMPORTS, bringing.file)
    count = sum(1 for _ in _look_through(path, held))
    told_at = time.monotonic()
    with documents(path) as found:
        for document in found:
            for each in conversations(document, held.keep):
                _bring(each, bringing, report)
                held.keep()
                if time.monotonic() - told_at > _TELL_SECONDS:
                    told_at = time.monotonic()
                    lease.held(bringing).update(progress=report.total / count, report=report.as_json())


def _look_through(path: Path, held: Lease) -> Iterator[None]:
    """Read the file to its end, a yield for each conversation. Raise `UnreadableFile`."""
    with documents(path) as found:
        for document in found:
            for count, _ in enumerate(conversations(document, held.keep), 1):
                if count > MOST_CONVERSATIONS:
                    raise UnreadableFile(f"There are more than {MOST_CONVERSATIONS:,} conversations in this file.")
                yield


def _bring(found: Incoming | Refused, bringing: Import, report: Report) -> None:
    if isinstance(found, Refused):
        report.add_refused(found)
        return
    try:
        report.add_stored(found, store(found, bringing))
    except RefusedConversation as error:
        report.add_refused(Refused(found.title, str(error)))


def _end(bringing: Import, report: Report, status: TransferStatus, error: str | None = None) -> None:
    progress = 1.0 if status == TransferStatus.DONE else bringing.progress
    written = report.as_json(error)
    if lease.held(bringing).update(status=status, progress=progress, report=written, file="", lease_expires_at=None):
        files.delete(files.IMPORTS, bringing.file)
        log.info("import_ended", import_id=str(bringing.pk), status=status, imported=report.imported)
