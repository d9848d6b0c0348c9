"""What the logs of staff's acts say about an account that is erased."""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from accounts.models import AuditLog, User

NOBODY = ""
REASON = "Erased with the account."


def anonymise(subject_ids: Iterable[object]) -> int:
    """Take out of the audit log what it says about these things, which are erased; return from how many entries.

    That somebody of the staff did something, what, and when, stays.
    """
    return _anonymise(Q(subject_id__in=[str(each) for each in subject_ids]))


def erase_from_logs(user_id: UUID) -> dict[str, int]:
    """Do so with whatever names the account or its address, and delete the admin pages' own lines about it."""
    names = [str(user_id), *User.objects.filter(pk=user_id).values_list("email", flat=True)]
    in_audit, in_admin = Q(), Q(user=user_id)
    for name in names:
        in_audit |= Q(subject_id=name) | Q(reason__icontains=name) | Q(changes_text__icontains=name)
        in_admin |= Q(object_id=name) | Q(object_repr__icontains=name) | Q(change_message__icontains=name)
    return {
        "entries of the audit log made anonymous": _anonymise(in_audit),
        "lines of the admin pages": LogEntry.objects.filter(in_admin).delete()[0],
    }


def _anonymise(which: Q) -> int:
    entries = AuditLog.objects.alias(changes_text=Cast("changes", TextField())).exclude(subject_id=NOBODY)
    return entries.filter(which).update(subject_id=NOBODY, reason=REASON, changes={})
