"""Warnings and suspensions: imposed, read, lifted, ended."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import sanctions
from accounts.callers import caller_from_bearer
from accounts.exceptions import AccountSuspended, InvalidRequest
from accounts.models import AuditLog, Erasure, Sanction, User
from accounts.tasks import end_due_suspensions
from foundation.ids import new_id
from tests.accounts.factories import PASSWORD, make_key, make_user

pytestmark = pytest.mark.django_db
REASON = "Sent the same advertisement to everybody."


@pytest.fixture
def staff():
    return make_user("chief@example.com", is_staff=True)


@pytest.fixture
def user():
    return make_user("ann@example.com", password=PASSWORD)


def make_due(sanction: Sanction) -> None:
    Sanction.objects.filter(pk=sanction.pk).update(ends_at=timezone.now() - timedelta(seconds=1))


def is_active(user: User) -> bool:
    return User.objects.get(pk=user.pk).is_active


def test_a_suspended_account_is_refused_with_why_and_until_when_and_not_by_whom(user, staff):
    secret = make_key(user)
    ends_at = timezone.now() + timedelta(days=2)
    sanctions.suspend(user, reason=REASON, by=staff, ends_at=ends_at)
    with pytest.raises(AccountSuspended) as refusal:
        caller_from_bearer(secret)
    assert f"{ends_at:%Y-%m-%d %H:%M} UTC" in refusal.value.message
    assert refusal.value.details == {"reason": REASON, "ends_at": ends_at.isoformat()}
    assert staff.email not in f"{refusal.value.message} {refusal.value.details}"


def test_a_suspension_ends_every_sign_in_at_once(user, staff, client):
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    assert client.get("/v1/limits").status_code == 200
    sanctions.suspend(user, reason=REASON, by=staff)
    assert client.get("/v1/limits").status_code == 401
    sanctions.lift(user, why="A mistake of ours.", by=staff)
    assert client.get("/v1/limits").status_code == 401  # the sign-in does not come back with the account


def test_an_end_that_has_passed_is_refused_and_nothing_is_done(user, staff):
    with pytest.raises(InvalidRequest):
        sanctions.suspend(user, reason=REASON, by=staff, ends_at=timezone.now())
    assert is_active(user)
    assert not Sanction.objects.exists()
    assert not AuditLog.objects.exists()


def test_a_due_suspension_is_ended_once_and_stays_on_record(user, staff):
    sanction = sanctions.suspend(user, reason=REASON, by=staff, ends_at=timezone.now() + timedelta(days=1))
    end_due_suspensions()
    assert not is_active(user)
    make_due(sanction)
    end_due_suspensions()
    end_due_suspensions()
    assert is_active(user)
    sanction.refresh_from_db()
    assert sanction.lifted_at == sanction.ends_at
    ended = AuditLog.objects.get(action="suspension_ended")
    assert ended.actor is None
    assert ended.subject_id == str(user.pk)


@pytest.mark.parametrize("other_days", [None, 5])
def test_an_account_stays_suspended_as_long_as_another_suspension_holds(user, staff, other_days):
    now = timezone.now()
    first = sanctions.suspend(user, reason=REASON, by=staff, ends_at=now + timedelta(days=1))
    other_end = now + timedelta(days=other_days) if other_days else None
    other = sanctions.suspend(user, reason=REASON, by=staff, ends_at=other_end)
    make_due(first)
    end_due_suspensions()
    assert not is_active(user)
    make_due(other)
    end_due_suspensions()
    assert is_active(user)


def test_an_account_that_is_being_erased_does_not_come_back(user, staff):
    sanction = sanctions.suspend(user, reason=REASON, by=staff, ends_at=timezone.now() + timedelta(days=1))
    Erasure.objects.create(user_id=user.pk, digest=new_id().bytes * 2)
    make_due(sanction)
    end_due_suspensions()
    assert not is_active(user)
    with pytest.raises(InvalidRequest):
        sanctions.lift(user, why="They asked nicely.", by=staff)
    assert not is_active(user)


def test_lifting_ends_every_suspension_and_keeps_them_on_record(user, staff):
    sanctions.suspend(user, reason=REASON, by=staff)
    sanctions.suspend(user, reason=REASON, by=staff, ends_at=timezone.now() + timedelta(days=1))
    assert sanctions.lift(user, why="It was somebody else.", by=staff) == 2
    assert is_active(user)
    assert Sanction.objects.exclude(lifted_at=None).count() == 2
    lifted = AuditLog.objects.get(action="suspension_lifted")
    assert (lifted.actor, lifted.reason) == (staff, "It was somebody else.")


def test_a_warning_restricts_nothing(user, staff):
    sanctions.warn(user, reason=REASON, by=staff)
    assert is_active(user)
    assert Sanction.objects.get().kind == "warning"
    assert AuditLog.objects.get().action == "warned"
