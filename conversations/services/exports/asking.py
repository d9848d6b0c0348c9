"""Asking for an export, and finding it again."""

from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from conversations.exceptions import NotFound
from conversations.models import Export
from conversations.models.transfer import TransferStatus
from conversations.services.transfers import files
from foundation.background import send_after_commit
from foundation.pages import DEFAULT_LIMIT, Page, newest_first

_WRITE = "conversations.tasks.write_export"


def ask_for(user: User) -> Export:
    """Have all that the user has written into one file; return the export that is under way, if there is one."""
    try:
        with transaction.atomic():
            export = Export.objects.create(user=user)
            send_after_commit(_WRITE, export.pk)
    except IntegrityError:
        return _under_way(user) or ask_for(user)
    return export


def exports_of(user_id: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Page[Export]:
    """Return a page of the user's exports that are there, newest first."""
    kept = Export.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), user_id=user_id)
    return newest_first(kept, cursor=cursor, limit=limit)


def export_of(user_id: UUID, export_id: UUID) -> Export:
    """Return the user's export; raise `NotFound` for anybody else's, and for one that has expired."""
    export = Export.objects.filter(user_id=user_id, pk=export_id).first()
    if export is None or _is_over(export):
        raise NotFound("There is no such export.", param="export_id")
    return export


def file_name(export: Export) -> str:
    """Return the name under which the file is handed out."""
    return f"chat-export-{export.created_at:%Y-%m-%d}.zip"


def is_ready(export: Export) -> bool:
    """Say whether its file is there."""
    return export.status == TransferStatus.DONE and files.path_of(files.EXPORTS, export.file).is_file()


def _under_way(user: User) -> Export | None:
    under_way = Export.objects.filter(user=user, status__in=(TransferStatus.QUEUED, TransferStatus.RUNNING))
    return under_way.first()


def _is_over(export: Export) -> bool:
    return export.expires_at is not None and export.expires_at <= timezone.now()
