"""Conversations and errands in any state, each in one line. From a coroutine, call them by `in_database`."""

from datetime import timedelta

from django.utils import timezone

from conversations.models import Conversation, Errand, Generation
from conversations.services import errands
from inference.messages import ChatMessage
from tests.accounts.factories import make_user
from tests.inference.core.factories import make_generation

QUESTION = "What is the best way to cook rice?"


def make_answer(conversation=None, *, status="complete", content="Slowly.", question=QUESTION, **fields) -> Generation:
    """An answer that has ended."""
    fields.setdefault("finished_at", timezone.now())
    return make_generation(conversation, status=status, content=content, question=question, **fields)


def make_errand(kind=Errand.Kind.TITLE, *, prompt="Name it.", max_tokens=50, answer=None) -> Errand:
    """An errand that waits, for a new conversation's answer unless one is given."""
    answer = answer or make_answer()
    errand = errands.request(
        kind,
        conversation=answer.conversation,
        message_id=answer.pk,
        prompt=[ChatMessage("user", prompt)],
        max_tokens=max_tokens,
    )
    assert errand is not None
    return errand


def written_errand(text: str, *, kind=Errand.Kind.TITLE, answer=None) -> Errand:
    """An errand for which a model has written this."""
    errand = make_errand(kind, answer=answer)
    attempt = errands.claim(errand.pk)
    assert attempt is not None
    assert errands.finish(attempt, text)
    return errand


def read_errand(errand_id) -> Errand:
    return Errand.objects.get(pk=errand_id)


def read_title(conversation_id) -> str:
    return Conversation.objects.get(pk=conversation_id).title


def make_older(errand_id, *, minutes) -> None:
    """Let everything that an errand waits for have begun so long ago."""
    ago = timezone.now() - timedelta(minutes=minutes)
    Errand.objects.filter(pk=errand_id).update(enqueued_at=ago)


def expire_lease(errand_id) -> None:
    """Let the worker of an errand be believed dead."""
    Errand.objects.filter(pk=errand_id).update(lease_expires_at=timezone.now() - timedelta(minutes=1))


def new_conversation(**fields) -> Conversation:
    return Conversation.objects.create(user=make_user(), **fields)
