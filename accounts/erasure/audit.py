"""What the logs of staff's acts say about an account that is erased."""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from accounts.erasure.naming import naming
from accounts.models import AuditLog

NOBODY = ""
REASON = "Erased with the account."


def anonymise(subject_ids: Iterable[object]) -> int:
    """Take out of the audit log what it says about these things, which are erased; return from how many entries.

    That somebody of the staff did something, what, and when, stays.
    """
    return _anonymise(Q(subject_id__in=[str(each) for each in subject_ids]))


def erase_from_logs(user_id: UUID) -> dict[str, int]:
    """Do so with whatever names the account or its address, and delete the admin pages' own lines about it."""
    name = naming(user_id)
    in_audit = Q(subject_id__iregex=name) | Q(reason__iregex=name) | Q(changes_text__iregex=name)
    in_admin = Q(object_id__iregex=name) | Q(object_repr__iregex=name) | Q(change_message__iregex=name)
    return {
        "entries of the audit log made anonymous": _anonymise(in_audit),
        "lines of the admin pages": LogEntry.objects.filter(Q(user=user_id) | in_admin).delete()[0],
    }


def _anonymise(which: Q) -> int:
    entries = AuditLog.objects.alias(changes_text=Cast("changes", TextField())).exclude(subject_id=NOBODY)
    return entries.filter(which).update(subject_id=NOBODY, reason=REASON, changes={})
