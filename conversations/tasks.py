"""Background work of conversations. Each task may run twice."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from conversations.models import IdempotencyKey
from conversations.services import generations, memories, temporary


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
def delete_outlived_conversations() -> int:
    """Delete the temporary conversations whose time is over; return how many."""
    return temporary.delete_outlived()


@shared_task  # type: ignore[untyped-decorator]  # Celery is untyped
def delete_outlived_memories() -> int:
    """Delete memories that expired, and proposals that nobody answered, a while ago; return how many."""
    return memories.delete_outlived()
