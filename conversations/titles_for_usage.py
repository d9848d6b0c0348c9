"""Tells accounts, which know only ids, what conversations are called."""

from collections.abc import Collection
from uuid import UUID

from accounts import conversation_titles
from conversations.models import Conversation


def titles_of(user_id: UUID, conversation_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the titles of those of the conversations that are the user's."""
    found = Conversation.objects.owned_by(user_id).filter(pk__in=conversation_ids)
    return dict(found.values_list("pk", "title"))


conversation_titles.register(titles_of)
