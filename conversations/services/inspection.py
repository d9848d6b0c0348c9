"""Members of staff who look at what is a user's: with a reason, which is kept before they see anything."""

from django.db import transaction

from accounts.models import AuditLog, User
from conversations.exceptions import InvalidRequest
from conversations.models import Generation
from conversations.seen_context import SeenContext, seen_context

SAW_CONTEXT = "saw_context"
LEAST_REASON_CHARACTERS = 10


def inspect_context(*, actor: User, generation: Generation, reason: str) -> SeenContext | None:
    """Write down who looks and why, and return what the model saw. Raise `InvalidRequest` without a reason."""
    reason = reason.strip()
    if len(reason) < LEAST_REASON_CHARACTERS:
        raise InvalidRequest(f"Give a reason of at least {LEAST_REASON_CHARACTERS} characters.", param="reason")
    with transaction.atomic():
        AuditLog.objects.create(
            actor=actor, action=SAW_CONTEXT, subject_type="generation", subject_id=str(generation.pk), reason=reason
        )
        return seen_context(generation)
