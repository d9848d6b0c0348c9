"""Going on with an answer that was cut off."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from accounts.models import User
from conversations import queries
from conversations.exceptions import GenerationInProgress, InvalidRequest
from conversations.models import Generation, Message
from conversations.models_on_offer import alias_to_use
from conversations.services.answer_requests import (
    AnswerRequest,
    NewIds,
    Sent,
    locked_conversation,
    model_wanted_for,
    request_once,
)
from conversations.services.idempotency import digest_of

CUT_OFF = ("length", "cancelled")
"""The finish reasons of answers that can go on."""


def continue_answer(
    *,
    user: User,
    message_id: UUID,
    options: Mapping[str, Any] | None = None,
    is_background: bool = False,
    idempotency_key: str | None = None,
) -> Sent:
    """Have an answer that was cut off go on in a new message, which holds only the text that continues it.

    It is written as the answer was, except for its length and what `options` say. Raise what `send` raises, and
    `InvalidRequest` for what cannot be continued.
    """
    digest = digest_of("continue", message_id, options, is_background)

    def prepare(_: NewIds) -> AnswerRequest:
        partial = queries.message_of(user.id, message_id)
        conversation = locked_conversation(user, partial.conversation_id)
        partial.refresh_from_db()
        _check_can_go_on(partial)
        partial.conversation = conversation
        chosen = alias_to_use(model_wanted_for(partial) or conversation.model, user.tier)
        return AnswerRequest(partial, chosen, _options_of(partial) | dict(options or {}), is_background)

    return request_once(user, idempotency_key, digest, prepare)


def _check_can_go_on(partial: Message) -> None:
    if partial.role == Message.Role.USER:
        raise InvalidRequest("This is a message of yours; only an answer can be continued.", param="message_id")
    if partial.is_under_way:
        raise GenerationInProgress("This answer is still being written; stop it, or wait for its end.")
    if partial.finish_reason not in CUT_OFF:
        raise InvalidRequest(
            "Only an answer that was stopped, or reached the longest length, can be continued.", param="message_id"
        )
    if not partial.content.strip():
        raise InvalidRequest("This answer has no text that could be continued; ask for another.", param="message_id")
    if partial.children.filter(role=Message.Role.ASSISTANT, status__in=Message.UNDER_WAY).exists():
        raise GenerationInProgress("This answer is being continued already; stop that, or wait for its end.")


def _options_of(answer: Message) -> dict[str, Any]:
    """Return how an answer was written, without the length that may have cut it off."""
    options = Generation.objects.filter(pk=answer.pk).values_list("options", flat=True).first() or {}
    return {name: value for name, value in options.items() if name != "max_tokens"}
