"""Upkeep of accounts, in the background. Each task may run any number of times."""

from datetime import timedelta

from celery import shared_task
from django.contrib.sessions.models import Session
from django.db.models import Max
from django.utils import timezone

from accounts import request_window, rollups
from accounts.models import RequestReservation, Tier


@shared_task  # type: ignore[untyped-decorator]
def clear_expired_sessions() -> None:
    """Delete the sessions that have expired."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()


@shared_task  # type: ignore[untyped-decorator]
def count_reservations_again() -> None:
    """Bring what was counted while Redis was away into the windows that Redis kept."""
    now = timezone.now()
    longest_seconds = Tier.objects.aggregate(longest=Max("window_seconds"))["longest"] or 0
    RequestReservation.objects.filter(created_at__lt=now - timedelta(seconds=longest_seconds)).delete()
    for reservation in RequestReservation.objects.iterator():
        age_ms = max(0, (now - reservation.created_at) // timedelta(milliseconds=1))
        request_window.add(reservation.user_id, reservation.request_id, age_ms=age_ms)


@shared_task  # type: ignore[untyped-decorator]
def roll_up_usage(days: int) -> None:
    """Bring the roll-ups of today and the days before it up to the ledger, `days` of them together."""
    rollups.roll_up_recent(days=days)
