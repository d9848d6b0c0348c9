"""Members of staff who look at what is a user's: with a reason, which is kept before they see anything."""

from django.db import transaction

from accounts.models import User
from conversations.exceptions import InvalidRequest
from conversations.models import Generation
from conversations.seen_context import SeenContext, seen_context
from foundation import audit
from foundation.audit import LEAST_REASON_CHARACTERS, Act

SAW_CONTEXT = "saw_context"


def inspect_context(*, actor: User, generation: Generation, reason: str) -> SeenContext | None:
    """Write down who looks and why, and return what the model saw. Raise `InvalidRequest` without a reason."""
    reason = reason.strip()
    if len(reason) < LEAST_REASON_CHARACTERS:
        raise InvalidRequest(f"Give a reason of at least {LEAST_REASON_CHARACTERS} characters.", param="reason")
    with transaction.atomic():
        audit.keep(Act(SAW_CONTEXT, "generation", str(generation.pk), reason, actor.pk))
        return seen_context(generation)
