"""How long instructions may be: some of the window is for the answer, and some for what is said."""

from collections.abc import Iterable
from uuid import UUID

from django.conf import settings

from conversations.exceptions import InvalidRequest
from conversations.models import Preference
from conversations.models_on_offer import window_tokens
from inference.stored_catalog import current_catalog
from inference.token_counting import count_now, upper_bound

_INSTRUCTIONS_SHARE = 2
"""Instructions may have half of the window: the answer has up to a quarter, so that a quarter is left to be said."""


def check_instructions(instructions: str, *, user_id: UUID, model: str = "", param: str = "instructions") -> None:
    """Raise `InvalidRequest` for a conversation's instructions that are too long for its model.

    With the site's and the user's standing ones they may have half of the window of the model, or of the smaller one
    that stands in for it. Raise `UnknownModel`.
    """
    if instructions:
        chosen = current_catalog().find(model)
        aliases = [chosen.alias, *([chosen.fallback] if chosen.fallback else [])]
        _check_share([standing_instructions(user_id), instructions], aliases, param)


def check_standing_instructions(instructions: str) -> None:
    """Raise `InvalidRequest` for standing instructions that, with the site's, have more than half of any window."""
    if instructions:
        _check_share([instructions], [model.alias for model in current_catalog().models], "instructions")


def _check_share(added: list[str], aliases: Iterable[str], param: str) -> None:
    windows = known_windows(aliases)
    if not windows:
        return
    alias = min(windows, key=windows.__getitem__)
    limit = windows[alias] // _INSTRUCTIONS_SHARE
    instructions = [text for text in (settings.SYSTEM_INSTRUCTIONS, *added) if text]
    if sum(map(upper_bound, instructions)) <= limit:
        return
    tokens = count_now(alias, "\n\n".join(instructions))
    if tokens is not None and tokens > limit:
        raise InvalidRequest(
            f"All instructions together, the site's and the standing ones too, have {tokens:,} tokens;"
            f" {limit:,} are allowed with the model {alias}: {tokens - limit:,} too many.",
            param=param,
        )


def standing_instructions(user_id: UUID) -> str:
    """Return what the user wants of every conversation."""
    return Preference.objects.filter(user_id=user_id).values_list("instructions", flat=True).first() or ""


def known_windows(aliases: Iterable[str]) -> dict[str, int]:
    """Return the windows of models by their aliases, without those of which none is known."""
    find_window = window_tokens()
    return {alias: window for alias in aliases if (window := find_window(alias))}
