"""Generations in any state, each in one line. These are synchronous: from a coroutine call them by `in_database`."""

from datetime import timedelta

from django.utils import timezone

from conversations.models import Conversation, Generation, Message
from conversations.services import claims
from conversations.services.history import History, read_history
from conversations.services.reading import MOST_HISTORY_BYTES, material_of
from conversations.streaming.snapshot import snapshot_of
from tests.accounts.factories import make_user


def make_generation(conversation=None, *, status="queued", content="", question="What?", **fields) -> Generation:
    """Make a question with its answer, in a new conversation of a new user's unless one is given."""
    conversation = conversation or Conversation.objects.create(user=make_user())
    asked = Message.objects.create(conversation=conversation, role="user", content=question)
    answer = Message.objects.create(
        conversation=conversation, parent=asked, role="assistant", status=status, content=content
    )
    return generation_of(answer, **fields)


def generation_of(answer, **fields) -> Generation:
    """Make the generation of an answer that there is."""
    values = {
        "priority_class": "free",
        "model": "small",
        "options": {"max_tokens": 100},
        "deadline": timezone.now() + timedelta(minutes=2),
        **fields,
    }
    return Generation.objects.create(
        message=answer,
        conversation=answer.conversation,
        user=answer.conversation.user,
        status=answer.status,
        **values,
    )


def make_turns(texts, conversation=None) -> Generation:
    """Store questions and answers in turn, and return the generation of an answer to the last."""
    conversation = conversation or Conversation.objects.create(user=make_user())
    parent = None
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        parent = Message.objects.create(conversation=conversation, parent=parent, role=role, content=text)
    return answer_to(parent)


def answer_to(message, conversation=None, **fields) -> Generation:
    """Make an empty answer to a message, and its generation."""
    conversation = conversation or message.conversation
    answer = Message.objects.create(conversation=conversation, parent=message, role="assistant", status="queued")
    return generation_of(answer, **fields)


def read_material_of(attempt, *, most_bytes=MOST_HISTORY_BYTES):
    """Read what an attempt's prompt is made of, past the cache."""
    opening = attempt.opening
    history = History()
    if opening.tip is not None:
        history = read_history(
            conversation_id=attempt.conversation_id,
            tip=opening.tip,
            previous=opening.previous,
            most_bytes=most_bytes,
        )
    return material_of(opening, history)


def make_attempt(conversation=None, **fields):
    """Make a generation and claim it."""
    attempt = claims.claim(make_generation(conversation, **fields).pk)
    assert attempt is not None
    return attempt


def read_generation(generation_id) -> Generation:
    return Generation.objects.select_related("message").get(pk=generation_id)


def read_snapshot(generation_id):
    return snapshot_of(read_generation(generation_id))


def expire_lease(generation_id) -> None:
    """Let the worker of a generation be believed dead."""
    Generation.objects.filter(pk=generation_id).update(lease_expires_at=timezone.now() - timedelta(minutes=1))
