"""The requests of a window as PostgreSQL knows them, for when Redis is away or has forgotten."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, QuerySet
from django.db.models.functions import Now

from accounts.models import RequestReservation, UsageRecord, User
from accounts.request_window import Window, WindowState


def requests_within(window: Window, under_way: Iterable[UUID] = ()) -> dict[UUID, int]:
    """Return the ages, in milliseconds, of the latest requests, by id. What is under way counts as of now."""
    ages = _ages(UsageRecord.objects.filter(user_id=window.user_id), window)
    ages |= _ages(RequestReservation.objects.filter(user_id=window.user_id), window)
    return ages | dict.fromkeys(under_way, 0)


def reserve(window: Window, request_id: UUID, under_way: Iterable[UUID]) -> WindowState:
    """Count a request if there is room. One at a time for each user, so that none slips past the limit."""
    with transaction.atomic():
        _wait_for_turn(window.user_id)
        ages = requests_within(window, under_way)
        admitted = request_id in ages or len(ages) < window.limit
        if admitted and request_id not in ages:
            RequestReservation.objects.create(request_id=request_id, user_id=window.user_id)
            ages[request_id] = 0
    return _state(window, ages, admitted=admitted)


def peek(window: Window) -> WindowState:
    """Return what the window holds."""
    return _state(window, requests_within(window), admitted=False)


def release(request_id: UUID) -> None:
    """Take a request out of its window."""
    RequestReservation.objects.filter(request_id=request_id).delete()


def _wait_for_turn(user_id: UUID) -> None:
    # Not the key: rows that refer to the user can still be written meanwhile.
    list(User.objects.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))


def _ages[Record: (UsageRecord, RequestReservation)](records: QuerySet[Record], window: Window) -> dict[UUID, int]:
    # By the database's clock alone: those of the web machines may differ.
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    recent = (
        records.annotate(age=age)
        .filter(created_at__gt=Now() - timedelta(seconds=window.seconds))
        .order_by("-created_at")
        .values_list("pk", "age")[: window.limit]
    )
    return {request_id: max(0, age // timedelta(milliseconds=1)) for request_id, age in recent}


def _state(window: Window, ages: dict[UUID, int], *, admitted: bool) -> WindowState:
    oldest_first = sorted(ages.values(), reverse=True)
    resets_in_ms = 0
    if oldest_first:
        first_to_leave = oldest_first[max(0, len(oldest_first) - max(1, window.limit))]
        resets_in_ms = window.seconds * 1000 - first_to_leave
    return WindowState(admitted=admitted, used=len(ages), resets_in_ms=resets_in_ms)
