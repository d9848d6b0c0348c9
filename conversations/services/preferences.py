"""What a user wants of every conversation: standing instructions, and whether memories are used."""

from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.models import User
from conversations.exceptions import InvalidRequest
from conversations.models import Preference
from conversations.services.conversations import MOST_INSTRUCTION_CHARACTERS
from conversations.services.instructions import check_standing_instructions
from foundation.text import is_storable

_CHANGEABLE = {"instructions", "uses_memories"}


def preference_of(user_id: UUID) -> Preference:
    """Return what the user has set, or what holds for who has set nothing."""
    return Preference.objects.filter(user_id=user_id).first() or Preference(user_id=user_id)


def locked(user: User) -> Preference:
    """Return what the user has set; until the commit, no other transaction changes it, or the user's memories."""
    Preference.objects.bulk_create([Preference(user=user)], ignore_conflicts=True)
    return Preference.objects.select_for_update().get(user=user)


def change(*, user: User, changes: dict[str, Any]) -> Preference:
    """Change some of `instructions, uses_memories`; both count from the next prompt on. Raise `InvalidRequest`."""
    assert changes.keys() <= _CHANGEABLE
    _check(changes)
    with transaction.atomic():
        preference = locked(user)
        for name, value in changes.items():
            setattr(preference, name, value)
        preference.save(update_fields=list(changes))
    return preference


def _check(changes: dict[str, Any]) -> None:
    instructions = changes.get("instructions", "")
    if len(instructions) > MOST_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"The instructions have {len(instructions):,} characters; {MOST_INSTRUCTION_CHARACTERS:,} are allowed.",
            param="instructions",
        )
    if not is_storable(instructions):
        raise InvalidRequest("instructions contains a NUL or a lone surrogate; remove it.", param="instructions")
    check_standing_instructions(instructions)
