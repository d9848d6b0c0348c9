"""The usage ledger and the upkeep of accounts."""

from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import RequestReservation, UsageRecord
from accounts.tasks import clear_expired_sessions, count_reservations_again
from foundation.ids import new_id
from tests.accounts import settling
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_generation_is_recorded_once_however_often_it_is_told():
    user, generation_id = make_user(), new_id()
    for tokens_out in (7, 9):
        settling.settle(
            generation_id=generation_id,
            user_id=user.pk,
            conversation_id=new_id(),
            model="small",
            tokens_in=5,
            tokens_cached=3,
            tokens_out=tokens_out,
        )
    record = UsageRecord.objects.get()
    assert (record.pk, record.tokens_in, record.tokens_cached, record.tokens_out) == (generation_id, 5, 3, 7)


def test_only_expired_sessions_are_cleared():
    live, expired = SessionStore(), SessionStore()
    live.create()
    expired.create()
    Session.objects.filter(pk=expired.session_key).update(expire_date=timezone.now() - timedelta(seconds=1))
    for _ in range(2):
        clear_expired_sessions()
    assert list(Session.objects.values_list("pk", flat=True)) == [live.session_key]


def test_reservations_past_every_window_are_forgotten():
    user = make_user()
    for hours in (1, 4):
        created_at = timezone.now() - timedelta(hours=hours)
        RequestReservation.objects.create(request_id=new_id(), user=user, created_at=created_at)
    count_reservations_again()
    assert RequestReservation.objects.count() == 1
