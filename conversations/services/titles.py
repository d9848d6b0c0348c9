"""Titles that a model gives: asked for once after a conversation's first answer, never in the place of the user's."""

from django.db import transaction

from conversations.broadcasts import broadcast_soon
from conversations.context.titles import prompt_for_title, title_from
from conversations.exchanges import exchange_of
from conversations.models import Conversation, Errand, Generation, Message
from conversations.services import errands

_MOST_TOKENS = 200
"""A title has ten; a model that thinks aloud first gets to it."""


def ask_for_title(generation: Generation) -> Errand | None:
    """Have the conversation of a complete answer named, unless it was before or the user has."""
    conversation = generation.conversation
    if conversation.is_title_chosen or conversation.temporary:
        return None
    if Errand.objects.filter(kind=Errand.Kind.TITLE, conversation=conversation).exists():
        return None
    question, answer = _exchange_of(generation.message)
    return errands.request(
        Errand.Kind.TITLE,
        conversation=conversation,
        message_id=generation.pk,
        prompt=prompt_for_title(question, answer),
        max_tokens=_MOST_TOKENS,
    )


def settle(errand: Errand) -> bool:
    """Name the conversation. Whatever the model wrote, some title comes of it."""
    question, _ = _exchange_of(errand.message)
    title = title_from(errand.text, question)
    unnamed = Conversation.objects.filter(pk=errand.conversation_id, is_title_chosen=False).exclude(title=title)
    if unnamed.update(title=title):
        user_id, conversation_id = errand.user_id, errand.conversation_id
        transaction.on_commit(
            lambda: broadcast_soon(user_id, "conversation_changed", conversation_id=conversation_id), robust=True
        )
    return True


def _exchange_of(answer: Message) -> tuple[str, str]:
    """Return what was asked and what was answered, from its beginning where that was cut off and has gone on."""
    exchange = exchange_of(answer)
    asked = [message.content for message in exchange if message.role == Message.Role.USER]
    answered = [message.content for message in exchange if message.role == Message.Role.ASSISTANT]
    return "".join(asked), "".join(answered)
