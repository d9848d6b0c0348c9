"""Takes an uploaded file in, and finds its import again."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.models import User
from conversations.exceptions import ContentTooLong, InvalidRequest, NotFound, TransferInProgress
from conversations.models import Import
from conversations.models.transfer import TransferStatus
from conversations.services.preferences import locked
from conversations.services.transfers import files
from foundation.background import send_after_commit

_READ = "conversations.tasks.read_import"
_MOST_UNDER_WAY = 3
_MOST_SHOWN = 30
_UNDER_WAY = (TransferStatus.QUEUED, TransferStatus.RUNNING)


class Upload(Protocol):
    """A file that has arrived."""

    @property
    def size(self) -> int | None: ...

    def chunks(self) -> Iterable[bytes]: ...


def accept(user: User, upload: Upload) -> Import:
    """Keep a file and have it imported; return the import that is under way, if it is of the same file.

    Raise `ContentTooLong`, `InvalidRequest` for an empty file, `TransferInProgress` where there are several already.
    """
    _check_size(upload.size or 0)
    name, digest = files.new_name(".upload"), sha256()
    with files.new_file(files.IMPORTS, name) as file:
        for chunk in upload.chunks():
            digest.update(chunk)
            file.write(chunk)
    bringing = None
    try:
        bringing = _new_import(user, name, digest.digest())
    finally:
        if bringing is None or bringing.file != name:
            files.delete(files.IMPORTS, name)
    return bringing


def check_length(byte_count: int) -> None:
    """Raise `ContentTooLong` for a request that is longer than any file that is accepted."""
    if byte_count > settings.MAX_IMPORT_BYTES + settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise _too_long()


def imports_of(user_id: UUID) -> list[Import]:
    """Return the user's last imports, newest first."""
    return list(Import.objects.filter(user_id=user_id).order_by("-pk")[:_MOST_SHOWN])


def import_of(user_id: UUID, import_id: UUID) -> Import:
    """Return the user's import; raise `NotFound` for anybody else's."""
    try:
        return Import.objects.get(user_id=user_id, pk=import_id)
    except Import.DoesNotExist:
        raise NotFound("There is no such import.", param="import_id") from None


@transaction.atomic
def _new_import(user: User, name: str, digest: bytes) -> Import:
    locked(user)  # so that two requests at once do not both take the last place
    under_way = Import.objects.filter(user=user, status__in=_UNDER_WAY)
    if same := under_way.filter(digest=digest).first():
        return same
    if under_way.count() >= _MOST_UNDER_WAY:
        raise TransferInProgress(f"{_MOST_UNDER_WAY} of your files are being imported; wait until one of them is.")
    bringing = Import.objects.create(user=user, file=name, digest=digest)
    send_after_commit(_READ, bringing.pk)
    return bringing


def _check_size(byte_count: int) -> None:
    if byte_count == 0:
        raise InvalidRequest("This file is empty.", param="file")
    if byte_count > settings.MAX_IMPORT_BYTES:
        raise _too_long()


def _too_long() -> ContentTooLong:
    most = settings.MAX_IMPORT_BYTES
    return ContentTooLong(
        f"This file is too large; {most:,} bytes are allowed.", param="file", details={"most_bytes": most}
    )
