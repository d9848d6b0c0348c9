"""Reservations whose generation is gone without an end: settled, so that their tokens come back."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db.models import DateTimeField, ExpressionWrapper, QuerySet
from django.db.models.functions import Now

from accounts import usage
from accounts.models import TokenReservation
from accounts.quotas.reserving import settled

_AFTER = timedelta(minutes=10)
_AT_ONCE = 500


def release_orphans(is_under_way: Callable[[list[UUID]], set[UUID]]) -> int:
    """Settle, with nothing used, the older reservations of what is not under way any more. Return how many there were.

    `is_under_way` is asked after the reservations were read: a generation and its reservation begin and end together.
    """
    before = ExpressionWrapper(Now() - _AFTER, output_field=DateTimeField())
    older = TokenReservation.objects.filter(created_at__lt=before).order_by("pk")
    owners, count = _batch(older, None), 0
    while owners:
        last = max(owners)
        gone = owners.keys() - is_under_way(list(owners))
        for generation_id in usage.settle_orphans(sorted(gone)):
            settled(owners[generation_id], generation_id, tokens_used=0)
            count += 1
        owners = _batch(older, last)
    return count


def _batch(reservations: QuerySet[TokenReservation], after: UUID | None) -> dict[UUID, UUID]:
    if after is not None:
        reservations = reservations.filter(pk__gt=after)
    return dict(reservations.values_list("pk", "user_id")[:_AT_ONCE])
