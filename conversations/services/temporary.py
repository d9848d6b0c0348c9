"""Temporary conversations: deleted a while after the last that was said in them."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from conversations.models import Conversation
from conversations.services.conversations import erase

_MOST_AT_ONCE = 1000


def delete_outlived() -> int:
    """Delete the temporary conversations whose time is over; return how many.

    One that is being answered stays until the answer has ended, and one that somebody writes to just now for longer.
    """
    due = Conversation.objects.outlived(timezone.now()).order_by("updated_at").values_list("pk", flat=True)
    return sum(_delete_if_outlived(conversation_id) for conversation_id in list(due[:_MOST_AT_ONCE]))


@transaction.atomic
def _delete_if_outlived(conversation_id: UUID) -> bool:
    """Look again under the lock that a message takes: what was said meanwhile counts."""
    outlived = Conversation.objects.outlived(timezone.now()).filter(pk=conversation_id)
    conversation = outlived.select_for_update(skip_locked=True).first()
    if conversation is None or conversation.generations.under_way().exists():
        return False
    erase(conversation)
    return True
