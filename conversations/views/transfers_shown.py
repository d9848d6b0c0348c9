"""Exports and imports as the page shows them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from conversations.models import Conversation, Export, Import
from conversations.models.transfer import TransferStatus
from conversations.services.exports import asking

_UNDER_WAY = (TransferStatus.QUEUED, TransferStatus.RUNNING)
_ORDER = {"refused": 0, "skipped": 1, "imported": 2}


@dataclass(frozen=True, slots=True)
class ShownExport:
    """One export. Without a file it is under way, or `error` says why there is none."""

    id: UUID
    begun_at: datetime
    kept_until: datetime | None
    byte_count: int
    error: str
    is_waiting: bool
    is_under_way: bool
    has_file: bool


@dataclass(frozen=True, slots=True)
class ShownImport:
    """One import, with the counts of what has come of its conversations so far."""

    id: UUID
    begun_at: datetime
    percent: int
    imported: int
    skipped: int
    refused: int
    error: str
    is_waiting: bool
    is_under_way: bool

    @property
    def total(self) -> int:
        return self.imported + self.skipped + self.refused


@dataclass(frozen=True, slots=True)
class CameOf:
    """What came of one conversation. `conversation_id` is there while the conversation is."""

    title: str
    outcome: str
    reason: str
    conversation_id: UUID | None


def shown_export(export: Export) -> ShownExport:
    """Return an export as the page shows it."""
    return ShownExport(
        id=export.pk,
        begun_at=export.created_at,
        kept_until=export.expires_at,
        byte_count=export.byte_count or 0,
        error=export.error_message,
        is_waiting=export.status == TransferStatus.QUEUED,
        is_under_way=export.status in _UNDER_WAY,
        has_file=asking.is_ready(export),
    )


def shown_import(bringing: Import) -> ShownImport:
    """Return an import as the page shows it."""
    report = bringing.report
    return ShownImport(
        id=bringing.pk,
        begun_at=bringing.created_at,
        percent=int(bringing.progress * 100),
        imported=report.get("imported", 0),
        skipped=report.get("skipped", 0),
        refused=report.get("refused", 0),
        error=report.get("error") or "",
        is_waiting=bringing.status == TransferStatus.QUEUED,
        is_under_way=bringing.status in _UNDER_WAY,
    )


def came_of(bringing: Import) -> list[CameOf]:
    """Return what came of the conversations that the report lists: first of those that are not here."""
    listed = bringing.report.get("conversations", [])
    named = [each["conversation_id"] for each in listed if each["conversation_id"]]
    there = set(Conversation.objects.owned_by(bringing.user_id).filter(pk__in=named).values_list("pk", flat=True))
    found = [
        CameOf(each["title"], each["outcome"], each["reason"] or "", _among(there, each["conversation_id"]))
        for each in listed
    ]
    return sorted(found, key=lambda each: _ORDER[each.outcome])


def _among(there: set[UUID], conversation_id: str | None) -> UUID | None:
    found = UUID(conversation_id) if conversation_id else None
    return found if found in there else None
