"""Warnings and suspensions: imposed, lifted, ended. What was imposed stays on record."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts import audit
from accounts.exceptions import AccountSuspended, InvalidRequest
from accounts.models import Erasure, Sanction, User
from accounts.signing_out import sign_out_everywhere


@dataclass(frozen=True, slots=True)
class Suspension:
    """What a suspended user is told: why, and until when (`None`: until it is lifted)."""

    reason: str
    ends_at: datetime | None

    @property
    def sentence(self) -> str:
        if self.ends_at is None:
            return "This account is suspended: ask the people who run this site."
        return f"This account is suspended until {self.ends_at:%Y-%m-%d %H:%M} UTC."


def warn(user: User, *, reason: str, by: User | None, why: str = "") -> Sanction:
    """Put a warning on record. It restricts nothing."""
    with transaction.atomic():
        audit.keep_of_user("warned", user.pk, reason=why or reason, by=by)
        return Sanction.objects.create(user=user, kind=Sanction.Kind.WARNING, reason=reason, imposed_by=by)


def suspend(user: User, *, reason: str, by: User | None, ends_at: datetime | None = None, why: str = "") -> Sanction:
    """Suspend an account and end its every sign-in at once. The user reads `reason`; the log keeps `why`.

    Raises `InvalidRequest` for an end that is not in the future.
    """
    if ends_at is not None and ends_at <= timezone.now():
        raise InvalidRequest("ends_at: The end of a suspension must lie in the future.", param="ends_at")
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        sanction = Sanction.objects.create(
            user=locked, kind=Sanction.Kind.SUSPENSION, reason=reason, imposed_by=by, ends_at=ends_at
        )
        User.objects.filter(pk=locked.pk).update(is_active=False)
        user.is_active = False
        sign_out_everywhere(user)
        until = ends_at.isoformat() if ends_at else None
        changes = {"is_active": {"before": locked.is_active, "after": False}, "until": {"before": None, "after": until}}
        audit.keep_of_user("suspended", user.pk, reason=why or reason, by=by, changes=changes)
    return sanction


def lift(user: User, *, why: str, by: User | None) -> int:
    """Lift every suspension of an account, which can sign in again; return how many there were."""
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        _refuse_if_being_erased(locked.pk)
        lifted = in_force().filter(user=locked).update(lifted_at=timezone.now())
        if lifted or not locked.is_active:
            User.objects.filter(pk=locked.pk).update(is_active=True)
            user.is_active = True
            changes = {"is_active": {"before": locked.is_active, "after": True}}
            audit.keep_of_user("suspension_lifted", user.pk, reason=why, by=by, changes=changes)
    return lifted


def end_due(now: datetime) -> int:
    """End the suspensions whose end has come; return how many accounts can sign in again."""
    due = Sanction.objects.filter(kind=Sanction.Kind.SUSPENSION, lifted_at=None, ends_at__lte=now)
    user_ids = due.order_by().values_list("user_id", flat=True).distinct()
    return sum(_end_due_of(user_id, now) for user_id in list(user_ids))


def in_force(at: datetime | None = None) -> QuerySet[Sanction]:
    """Return the suspensions that hold."""
    now = at or timezone.now()
    unended = Q(ends_at=None) | Q(ends_at__gt=now)
    return Sanction.objects.filter(unended, kind=Sanction.Kind.SUSPENSION, lifted_at=None)


def suspension_of(user_id: UUID | str) -> Suspension:
    """Return what a suspended user is told: of several suspensions, of the one that lasts longest."""
    longest_first = Sanction.objects.filter(user_id=user_id, kind=Sanction.Kind.SUSPENSION, lifted_at=None)
    found = max(longest_first, key=lambda each: (each.ends_at is None, each.ends_at or each.created_at), default=None)
    return Suspension(found.reason, found.ends_at) if found else Suspension("", None)


def account_suspended(user_id: UUID | str) -> AccountSuspended:
    """Return the refusal that a suspended user gets: until when and why, and not who imposed it."""
    suspension = suspension_of(user_id)
    ends_at = suspension.ends_at.isoformat() if suspension.ends_at else None
    return AccountSuspended(suspension.sentence, details={"reason": suspension.reason, "ends_at": ends_at})


def _end_due_of(user_id: UUID, now: datetime) -> int:
    with transaction.atomic():
        user = User.objects.select_for_update().filter(pk=user_id).first()
        if user is None:
            return 0
        due = Sanction.objects.filter(user=user, kind=Sanction.Kind.SUSPENSION, lifted_at=None, ends_at__lte=now)
        # Ended on the day it was to end, however late that is noticed here.
        ended = [Sanction.objects.filter(pk=each.pk).update(lifted_at=each.ends_at) for each in due]
        is_held = in_force(now).filter(user=user).exists() or _is_being_erased(user_id)
        if not ended or is_held or user.is_active:
            return 0
        User.objects.filter(pk=user_id).update(is_active=True)
        changes = {"is_active": {"before": False, "after": True}}
        audit.keep_of_user("suspension_ended", user_id, reason="Its end has come.", by=None, changes=changes)
    return 1


def _is_being_erased(user_id: UUID) -> bool:
    return Erasure.objects.filter(user_id=user_id).exists()


def _refuse_if_being_erased(user_id: UUID) -> None:
    if _is_being_erased(user_id):
        raise InvalidRequest("This account is being erased: it stays closed.")
