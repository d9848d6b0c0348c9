"""Background work of conversations. Each task may run twice."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from accounts import quotas
from conversations.models import IdempotencyKey
from conversations.services import background, generations, memories, temporary
from conversations.services.exports import writing
from conversations.services.imports import reading
from conversations.services.transfers import upkeep

_LONGEST_TRANSFER_SECONDS = 3_000
"""Below the broker's visibility timeout; an import that was stopped goes on where it was."""


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def delete_expired_idempotency_keys() -> int:
    """Delete keys that no longer protect anything; return how many."""
    expired = timezone.now() - timedelta(hours=settings.IDEMPOTENCY_KEEP_HOURS)
    return IdempotencyKey.objects.filter(created_at__lt=expired).delete()[0]


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def give_up_overdue_generations() -> int:
    """End generations whose deadline passed while no worker was there to take them; return how many."""
    return generations.give_up_overdue()


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def release_orphaned_reservations() -> int:
    """Settle what is still reserved for generations that are gone; return how many."""
    return quotas.release_orphans(generations.under_way_among)


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def delete_outlived_conversations() -> int:
    """Delete the temporary conversations whose time is over; return how many."""
    return temporary.delete_outlived()


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def delete_outlived_memories() -> int:
    """Delete memories that expired, and proposals that nobody answered, a while ago; return how many."""
    return memories.delete_outlived()


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def look_after_answer(generation_id: str) -> None:
    """Ask for what an answer that has ended gives rise to: a title, a summary."""
    background.look_after(UUID(generation_id))


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def settle_errand(errand_id: str) -> None:
    """Let a title or a summary come of what a model wrote."""
    background.settle(UUID(errand_id))


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def sweep_errands() -> int:
    """Bring lost errands back, and have those settled that were forgotten; return how many these are."""
    unsettled = background.sweep()
    # Each in a task of its own: one that fails holds up no other.
    for errand_id in unsettled:
        settle_errand.delay(str(errand_id))
    return len(unsettled)


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def look_after_neglected() -> int:
    """Have answers looked after that ended while the broker was away; return how many."""
    neglected = background.neglected()
    for generation_id in neglected:
        look_after_answer.delay(str(generation_id))
    return len(neglected)


@shared_task(time_limit=_LONGEST_TRANSFER_SECONDS)  # type: ignore[untyped-decorator]  # Celery is untyped
def write_export(export_id: str) -> None:
    """Write the file of an export, unless another process does."""
    writing.write(UUID(export_id))


@shared_task(time_limit=_LONGEST_TRANSFER_SECONDS)  # type: ignore[untyped-decorator]  # Celery is untyped
def read_import(import_id: str) -> None:
    """Bring in what an uploaded file holds, unless another process does."""
    reading.read(UUID(import_id))


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def take_up_transfers() -> int:
    """Have exports and imports gone on with that nobody works on; return how many."""
    forsaken = upkeep.give_up_or_find_forsaken()
    for export_id in forsaken.exports:
        write_export.delay(str(export_id))
    for import_id in forsaken.imports:
        read_import.delay(str(import_id))
    return len(forsaken.exports) + len(forsaken.imports)


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def delete_expired_exports() -> int:
    """Delete exports whose time is over, and files that no row knows; return how many."""
    return upkeep.delete_what_is_over()
