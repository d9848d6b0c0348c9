"""The audit log: every act of the staff's, and what the system does to accounts by itself."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from accounts.models import AuditLog, User
from foundation import audit
from foundation.audit import Act


def keep(act: Act) -> AuditLog:
    """Add a row, in the caller's transaction: an act that is rolled back takes its row along."""
    return AuditLog.objects.create(
        actor_id=act.actor_id,
        action=act.action,
        subject_type=act.subject_type,
        subject_id=act.subject_id,
        reason=act.reason,
        changes=dict(act.changes),
    )


def keep_of_user(
    action: str, user_id: UUID, *, reason: str, by: User | None, changes: Mapping[str, Any] | None = None
) -> AuditLog:
    """Add a row about what was done to an account; without `by` it was the system."""
    row = audit.keep(Act(action, "user", str(user_id), reason, by.pk if by else None, changes or {}))
    assert isinstance(row, AuditLog)
    return row
