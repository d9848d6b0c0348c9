"""Writing, changing and deleting what is remembered of a user. All of it is deliberate: the user asks, or confirms."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from conversations import queries
from conversations.context.memories import fact_to_remember
from conversations.exceptions import InvalidRequest, MemoriesFull, NotFound
from conversations.models import Conversation, Memory, Message
from conversations.services import preferences
from conversations.services.memory_limits import most_memories, most_memory_tokens
from conversations.services.memory_text import checked_line, folded, size_over_limit

SAVED, KNOWN, FULL, TOO_LONG = "memory_saved", "memory_known", "memory_full", "memory_too_long"
MOST_PROPOSALS = 20
"""Open proposals of a user; they do not count as memories, and a further one takes the place of the oldest."""
KEEP_DAYS = 30
"""How long a proposal waits for its answer, and how long an expired memory is still shown."""
_CHANGEABLE = {"content", "enabled", "expires_at", "confirmed", "reviewed"}


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that is there now. `is_new` says whether it was not in force before."""

    memory: Memory
    is_new: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message asks to have remembered."""

    fact: str
    is_too_long: bool


def create(*, user: User, content: str, expires_at: datetime | None = None) -> Kept:
    """Remember what the user wrote; return the memory that is there already where one says the same.

    Raise `InvalidRequest`, or `MemoriesFull` where there are as many as are allowed.
    """
    line = checked_line(content, most_tokens=most_memory_tokens(user))
    _check_expiry(expires_at)
    with transaction.atomic():
        preferences.locked(user)
        return _keep(Memory(user=user, content=line, origin=Memory.Origin.WRITTEN, expires_at=expires_at))


def asked_in(text: str, *, user: User) -> Asked | None:
    """Return what a message deliberately asks to have remembered. It may ask a model server to count."""
    fact = fact_to_remember(text)
    return Asked(fact, size_over_limit(fact, most_memory_tokens(user)) is not None) if fact else None


def remember(asked: Asked | None, *, user: User, question: Message) -> tuple[str, ...]:
    """Do what a message asks, within the transaction that stores it; return the codes of what its reader is told."""
    if asked is None or question.conversation.temporary or not preferences.locked(user).uses_memories:
        return ()
    if asked.is_too_long:
        return (TOO_LONG,)
    origin = {"conversation_id": question.conversation_id, "message_id": question.id}
    try:
        kept = _keep(Memory(user=user, content=asked.fact, origin=Memory.Origin.ASKED, **origin))
    except MemoriesFull:
        return (FULL,)
    return (SAVED,) if kept.is_new else (KNOWN,)


def propose(*, user: User, content: str, message: Message) -> Memory | None:
    """Suggest a memory that the user may confirm; `None` where it is known, or where no memories are to be written.

    Raise `InvalidRequest` for a text that could not be kept.
    """
    line = checked_line(content, most_tokens=most_memory_tokens(user))
    with transaction.atomic():
        # In the order in which a message takes them: its conversation first.
        conversation = Conversation.objects.select_for_update().filter(pk=message.conversation_id).first()
        if conversation is None or conversation.temporary or not preferences.locked(user).uses_memories:
            return None
        if _saying_the_same(user, line):
            return None
        memory = Memory.objects.create(
            user=user, content=line, origin=Memory.Origin.PROPOSED, conversation=conversation, message=message
        )
        proposals = Memory.objects.owned_by(user.pk).proposed()
        newest = proposals.order_by("-id").values_list("pk", flat=True)[:MOST_PROPOSALS]
        proposals.exclude(pk__in=list(newest)).delete()
    return memory


def change(*, user: User, memory_id: UUID, changes: dict[str, Any]) -> Memory:
    """Change some of `content, enabled, expires_at`; `confirmed` accepts a proposal, `reviewed` says that it holds.

    Raise `NotFound`, `InvalidRequest`, `MemoriesFull`.
    """
    assert changes.keys() <= _CHANGEABLE
    queries.memory_of(user.id, memory_id)
    if "content" in changes:
        changes = changes | {"content": checked_line(changes["content"], most_tokens=most_memory_tokens(user))}
    _check_expiry(changes.get("expires_at"))
    with transaction.atomic():
        preferences.locked(user)
        values = _new_values(queries.memory_of(user.id, memory_id), changes)
        if values and not Memory.objects.owned_by(user.pk).filter(pk=memory_id).update(**values):
            raise _no_such_memory()
    return queries.memory_of(user.id, memory_id)


def decline(*, user: User, memory_id: UUID) -> None:
    """Delete a proposal; one that was accepted meanwhile stays."""
    queries.memory_of(user.id, memory_id)
    Memory.objects.owned_by(user.pk).proposed().filter(pk=memory_id).delete()


def delete(*, user: User, memory_id: UUID) -> None:
    """Forget: from now on no prompt has it. Raise `NotFound`."""
    if not Memory.objects.owned_by(user.pk).filter(pk=memory_id).delete()[0]:
        raise _no_such_memory()


def delete_outlived() -> int:
    """Delete expired memories and unanswered proposals after a while; return how many."""
    before = timezone.now() - timedelta(days=KEEP_DAYS)
    is_unanswered = Q(confirmed_at=None, created_at__lt=before)
    return Memory.objects.filter(is_unanswered | Q(expires_at__lt=before)).delete()[0]


def _keep(memory: Memory) -> Kept:
    """Put a memory in force. The user's preference is locked, so that two cannot take the last place."""
    now = timezone.now()
    same = _saying_the_same(memory.user, memory.content)
    if same is not None and same.is_in_force:
        return Kept(same, is_new=False)
    if same is None or same.is_proposed:
        _check_room(memory.user)
    if same is not None:
        same.enabled, same.confirmed_at = True, same.confirmed_at or now
        same.updated_at = same.reviewed_at = now
        same.expires_at = memory.expires_at
        memory = same
    else:
        memory.confirmed_at = now
    memory.save()
    return Kept(memory, is_new=True)


def _new_values(memory: Memory, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the columns to change."""
    now = timezone.now()
    values: dict[str, Any] = {name: changes[name] for name in ("content", "enabled", "expires_at") if name in changes}
    if values:
        values["updated_at"] = now
    if "content" in values:
        same = _saying_the_same(memory.user, values["content"])
        if same is not None and same.pk != memory.pk:
            raise InvalidRequest("Another memory says the same already.", param="content")
        values["reviewed_at"] = now
    if changes.get("confirmed") and memory.is_proposed:
        _check_room(memory.user)
        values |= {"confirmed_at": now, "reviewed_at": now}
    if changes.get("reviewed"):
        values["reviewed_at"] = now
    return values


def _saying_the_same(user: User, line: str) -> Memory | None:
    """Return the memory whose text is the same but for case, space and the stop at its end."""
    wanted = folded(line)
    return next((memory for memory in Memory.objects.owned_by(user.pk) if folded(memory.content) == wanted), None)


def _check_room(user: User) -> None:
    count, most = Memory.objects.owned_by(user.pk).filter(confirmed_at__isnull=False).count(), most_memories(user)
    if count >= most:
        raise MemoriesFull(f"You have {count:,} memories; {most:,} are allowed. Delete one first.", param="content")


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidRequest("The time of expiry must lie in the future.", param="expires_at")


def _no_such_memory() -> NotFound:
    return NotFound("There is no such memory.", param="memory_id")
