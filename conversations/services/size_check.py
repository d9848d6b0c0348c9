"""Refuses a message that is too long for the model, before anything is written for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from accounts.models import User
from conversations.context.fitting import budget_of, too_long
from conversations.context.prompt import BETWEEN_BLOCKS
from conversations.exceptions import ContentTooLong
from conversations.models import Conversation
from conversations.models_on_offer import alias_to_use
from conversations.services.admission import within_limits
from conversations.services.instructions import known_windows, standing_instructions
from inference.messages import ChatMessage
from inference.stored_catalog import current_catalog
from inference.template_tokens import SUPPOSED
from inference.token_counting import count_now, count_prompt_now, upper_bound

_SHORT_SHARE = 4
"""A message that has no more of the window fits beside what instructions and answer may have."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What stands before a message: its conversation's model, and all instructions."""

    model: str
    instructions: tuple[str, ...]


def check_fits(
    *, user: User, conversation_id: UUID | None, content: str, model: str | None, options: Mapping[str, Any]
) -> None:
    """Raise `ContentTooLong` for a message that does not fit into the window, even with nothing but the instructions.

    It may ask a model server to count, so call it outside of transactions. A conversation that is not the user's is
    left to whoever writes to it. Raise `UnknownModel`, `ModelNotInTier`.
    """
    windows = known_windows(each.alias for each in current_catalog().models)
    if not windows or upper_bound(content) <= min(windows.values()) // _SHORT_SHARE:
        return
    before = _before(user.pk, conversation_id)
    if before is None:
        return
    alias = alias_to_use(model or before.model, user.tier)
    if alias not in windows:
        return
    budget = budget_of(windows[alias], within_limits(user, alias, options)["max_tokens"])
    _check_content(content, before.instructions, alias, budget)


def _check_content(content: str, instructions: tuple[str, ...], alias: str, budget: int) -> None:
    """Compare what the worker will compare: the server's own count of the least prompt there can be."""
    prompt = (*_system(instructions), ChatMessage("user", content))
    if sum(upper_bound(message.content) + SUPPOSED.per_message for message in prompt) + SUPPOSED.base <= budget:
        return
    whole = count_prompt_now(alias, prompt)
    if whole is None or whole <= budget:
        return
    tokens = count_now(alias, content)
    limit = budget - whole + (tokens or 0)
    if tokens is None or limit < 0:
        raise too_long(whole, budget)
    over = tokens - limit
    raise ContentTooLong(
        f"The message has {tokens:,} tokens; {limit:,} fit: {over:,} too many.",
        param="content",
        details={"tokens": tokens, "limit": limit, "over": over},
    )


def _system(instructions: tuple[str, ...]) -> tuple[ChatMessage, ...]:
    return (ChatMessage("system", BETWEEN_BLOCKS.join(instructions)),) if instructions else ()


def _before(user_id: UUID, conversation_id: UUID | None) -> _Before | None:
    if conversation_id is None:
        return _Before("", _with_sites(standing_instructions(user_id)))
    found = Conversation.objects.owned_by(user_id).filter(pk=conversation_id)
    row = found.values_list("model", "instructions", "user__preference__instructions").first()
    return row and _Before(row[0], _with_sites(row[2], row[1]))


def _with_sites(*instructions: str | None) -> tuple[str, ...]:
    return tuple(text for text in (settings.SYSTEM_INSTRUCTIONS, *instructions) if text)
