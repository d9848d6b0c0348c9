"""What is done here when an account is erased: what was said is forgotten everywhere."""

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from django.apps import apps
from django.conf import settings

from accounts.erasure import audit
from accounts.erasure.stores import register
from conversations.models import Conversation, Memory, Preference
from conversations.services import context_cache, conversations
from conversations.services.exports import writing
from conversations.services.imports import reading
from foundation.redis import shared_client
from inference import answer_cache, cancellation, queue, token_stream
from inference.stored_catalog import current_catalog

CONVERSATIONS = "conversations"
_MOST_AT_ONCE = 50


def register_all() -> None:
    """Make this app's stores known."""
    # First what would bring conversations back.
    register("imports", reading.erase)
    register("exports", writing.erase)
    register(CONVERSATIONS, _erase_conversations)
    register("memories", _erase_memories)
    register("preferences", _erase_preferences)
    register("turns in the queue", _forget_turns, after=[CONVERSATIONS])


def _erase_conversations(user_id: UUID) -> Mapping[str, int]:
    """Erase some conversations, first from Redis: while that is away nothing is erased, and it is tried again."""
    counts: Counter[str] = Counter()
    some = Conversation.objects.owned_by(user_id).select_for_update(of=("self",)).order_by("pk")[:_MOST_AT_ONCE]
    for conversation in some:
        generation_ids = list(conversation.generations.values_list("pk", flat=True))
        errand_ids = list(conversation.errands.values_list("pk", flat=True))
        audit.anonymise([conversation.pk, *generation_ids])
        counts["answers in the cache"] += _forget(conversation.pk, generation_ids, errand_ids)
        for label, count in conversations.erase(conversation).items():
            counts[str(apps.get_model(label)._meta.verbose_name_plural)] += count
    return counts


def _forget(conversation_id: UUID, generation_ids: list[UUID], errand_ids: list[UUID]) -> int:
    """Forget what Redis holds of a conversation. A worker that still writes for it finds its stream closed for good."""
    client = shared_client()
    queue.remove(client, [*generation_ids, *errand_ids])
    _stop(errand_ids)
    token_stream.close_for_good(client, generation_ids, settings.STREAM_KEEP_SECONDS)
    context_cache.forget_in(client, conversation_id)
    return answer_cache.forget(client, generation_ids)


def _stop(errand_ids: Iterable[UUID]) -> None:
    for errand_id in errand_ids:
        cancellation.announce(shared_client(), errand_id)


def _erase_memories(user_id: UUID) -> int:
    theirs = Memory.objects.owned_by(user_id)
    audit.anonymise(theirs.values_list("pk", flat=True))
    return theirs.delete()[0]


def _erase_preferences(user_id: UUID) -> int:
    return Preference.objects.filter(user=user_id).delete()[0]


def _forget_turns(user_id: UUID) -> int:
    """Forget how much was written for the account of late, by which the queue is fair."""
    return queue.forget_user(shared_client(), [model.alias for model in current_catalog().models], user_id)
