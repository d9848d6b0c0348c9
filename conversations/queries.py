"""What is read: every query of conversations carries its owner, so that a stranger's id finds nothing."""

from uuid import UUID

from django.db.models import Q

from conversations.exceptions import NotFound
from conversations.models import Conversation, Generation, Memory, Message
from foundation.pages import DEFAULT_LIMIT, Cursor, Page, newest_first, page_of


def conversation_of(user_id: UUID, conversation_id: UUID) -> Conversation:
    """Return the user's conversation; raise `NotFound` for anybody else's."""
    try:
        return Conversation.objects.owned_by(user_id).get(pk=conversation_id)
    except Conversation.DoesNotExist:
        raise NotFound("There is no such conversation.", param="conversation_id") from None


def message_of(user_id: UUID, message_id: UUID) -> Message:
    """Return a message of the user's, its conversation loaded; raise `NotFound` for anybody else's."""
    try:
        return Message.objects.select_related("conversation").get(pk=message_id, conversation__user_id=user_id)
    except Message.DoesNotExist:
        raise NotFound("There is no such message.", param="message_id") from None


def generation_of(user_id: UUID, generation_id: UUID) -> Generation:
    """Return the user's generation, its message loaded; raise `NotFound` for anybody else's."""
    try:
        return Generation.objects.owned_by(user_id).with_what_they_follow().get(pk=generation_id)
    except Generation.DoesNotExist:
        raise NotFound("There is no such generation.", param="generation_id") from None


def memory_of(user_id: UUID, memory_id: UUID) -> Memory:
    """Return a memory of the user's; raise `NotFound` for anybody else's."""
    try:
        return Memory.objects.owned_by(user_id).get(pk=memory_id)
    except Memory.DoesNotExist:
        raise NotFound("There is no such memory.", param="memory_id") from None


def memories_of(user_id: UUID) -> list[Memory]:
    """Return all of the user's memories and proposals, newest first, with the conversations that they come from."""
    return list(Memory.objects.owned_by(user_id).select_related("conversation").order_by("-id"))


def recent_memories(user_id: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Page[Memory]:
    """Return the user's memories and the proposals of some, newest first."""
    return newest_first(Memory.objects.owned_by(user_id), cursor=cursor, limit=limit)


def recent_conversations(
    user_id: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, archived: bool = False
) -> Page[Conversation]:
    """Return the user's conversations, newest change first."""
    found = Conversation.objects.owned_by(user_id).filter(archived=archived, temporary=False)
    if cursor:
        last = Cursor.read(cursor, is_timed=True)
        found = found.filter(Q(updated_at__lt=last.at) | Q(updated_at=last.at, pk__lt=last.last_id))
    items = list(found.order_by("-updated_at", "-id")[: limit + 1])
    return page_of(items, limit, lambda last: Cursor(last.id, last.updated_at))


def active_branch(conversation: Conversation) -> list[Message]:
    """Return the branch that is shown; without a mark, the one that ends in the newest message."""
    return _messages(branch_ids(conversation))


def branch_ids(conversation: Conversation, message_id: UUID | None = None) -> list[UUID]:
    """Return the ids of the path to a message, or else of the branch that is shown; none for a foreign message."""
    end = message_id or conversation.active_message_id or _newest_message_id(conversation.id)
    return _path_to(conversation.id, end)


def _path_to(conversation_id: UUID, message_id: UUID | None) -> list[UUID]:
    """Return the ids of a path.

    The whole tree is read at once and walked here: PostgreSQL's recursion, guarded against a cycle, copies the path at
    each of its steps, which for a path of 5,000 messages took minutes.
    """
    if message_id is None:
        return []
    parents = dict(Message.objects.filter(conversation_id=conversation_id).values_list("id", "parent_id"))
    path = []
    while message_id is not None and message_id in parents:
        path.append(message_id)
        message_id = parents.pop(message_id)  # taken out, so that a damaged tree's circle ends
    return path[::-1]


def _messages(ids: list[UUID]) -> list[Message]:
    found = Message.objects.in_bulk(ids)
    return [found[each] for each in ids if each in found]


def _newest_message_id(conversation_id: UUID) -> UUID | None:
    return Message.objects.filter(conversation_id=conversation_id).order_by("-id").values_list("id", flat=True).first()


def page_of_messages(
    conversation: Conversation, *, cursor: str | None, limit: int, every_branch: bool
) -> Page[Message]:
    """Return messages, oldest first, of the active branch or of all branches."""
    after = Cursor.read(cursor).last_id if cursor else None
    if every_branch:
        found = Message.objects.filter(conversation=conversation).order_by("id")
        items = list((found.filter(pk__gt=after) if after else found)[: limit + 1])
    else:
        # Along a branch the ids grow, so what the cursor names may have left it.
        path = [each for each in branch_ids(conversation) if after is None or each > after]
        items = _messages(path[: limit + 1])
    return page_of(items, limit, lambda last: Cursor(last.id))


def under_way_of(user_id: UUID) -> list[Generation]:
    """Return the user's generations that have not ended."""
    return list(Generation.objects.owned_by(user_id).under_way().order_by("message_id"))
