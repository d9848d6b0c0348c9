"""Whether a message is let in now, and what its answer does without."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings

from accounts.models import User
from conversations.exceptions import Overloaded
from conversations.models_on_offer import most_answer_tokens
from conversations.services import memories
from foundation.redis import REDIS_UNREACHABLE, shared_client
from inference import metrics, overload
from inference.overload import FALLBACK_MODEL, OUTPUT_SHORTENED, SHORT_ANSWER_TOKENS, TOOLS_DISABLED
from inference.stored_catalog import current_catalog

log = structlog.get_logger(__name__)

NOTICES = {
    OUTPUT_SHORTENED: "Many people are asking; this answer is kept short.",
    TOOLS_DISABLED: "Many people are asking; this answer is written without tools.",
    FALLBACK_MODEL: "Many people are asking; a smaller model answers.",
    memories.SAVED: "This will be remembered in other conversations too.",
    memories.KNOWN: "This was remembered already.",
    memories.FULL: "This is not remembered: you have as many memories as are allowed. Delete one first.",
    memories.TOO_LONG: "This is not remembered: it is longer than a memory may be.",
}
_LONGEST_RETRY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Admission:
    """A message that was let in: who answers it and how. `notices` are the codes of what the answer does without."""

    model: str
    options: dict[str, Any]
    notices: tuple[str, ...] = ()
    asked: overload.Request | None = None


def admit(user: User, generation_id: UUID, model: str, options: Mapping[str, Any]) -> Admission:
    """Let a message in, before anything is written for it, or raise `Overloaded`.

    Redis away says nothing about the load: then the message is let in, and its deadline decides.
    """
    priority_class = user.tier.priority_class
    request = overload.Request(
        generation_id, user.pk, priority_class, model, _fallback(user, model), deadline_seconds(priority_class)
    )
    try:
        answer = overload.ask(shared_client(), request)
    except REDIS_UNREACHABLE as error:
        log.warning("door_unreachable", error=type(error).__name__)
        return Admission(model, within_limits(user, model, options))
    if answer.model is None:
        metrics.SHEDS.labels(model, priority_class).inc()
        raise _overloaded(answer.expected_wait_seconds)
    wanted = within_limits(user, answer.model, options)
    given, notices = _without(wanted, answer.steps)
    for step in notices:
        metrics.DEGRADATIONS.labels(priority_class, step).inc()
    return Admission(answer.model, given, notices, request)


def _fallback(user: User, model: str) -> str:
    """Return the smaller model that may answer, if the user's tier has it."""
    fallback = current_catalog().find(model).fallback
    return fallback if user.tier.allows_model(fallback) else ""


def leave(admission: Admission) -> None:
    """Take back a message that was let in, and of which nothing came."""
    if admission.asked is None:
        return
    try:
        overload.leave(shared_client(), admission.asked, admission.model)
    except REDIS_UNREACHABLE as error:
        # It is forgotten after a while.
        log.warning("door_unreachable", error=type(error).__name__)


def deadline_seconds(priority_class: str) -> float:
    """Return how long a message of a class waits for a model server at most."""
    is_background = priority_class == "background"
    seconds: float = settings.BACKGROUND_DEADLINE_SECONDS if is_background else settings.QUEUE_DEADLINE_SECONDS
    return seconds


def deadline_after(priority_class: str) -> timedelta:
    """Return the same as a duration."""
    return timedelta(seconds=deadline_seconds(priority_class))


def within_limits(user: User, model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the longest answer that the user, the model and the site allow."""
    limits = [user.tier.max_answer_tokens, settings.MAX_ANSWER_TOKENS, most_answer_tokens(model)]
    most = min(limit for limit in limits if limit is not None)
    return {**options, "max_tokens": min(most, int(options.get("max_tokens") or most))}


def _without(options: dict[str, Any], steps: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the options after these steps, and those steps that changed something."""
    changed = []
    if OUTPUT_SHORTENED in steps and options["max_tokens"] > SHORT_ANSWER_TOKENS:
        options = {**options, "max_tokens": SHORT_ANSWER_TOKENS}
        changed.append(OUTPUT_SHORTENED)
    if TOOLS_DISABLED in steps and options.get("tools"):
        options = {**options, "tools": []}
        changed.append(TOOLS_DISABLED)
    if FALLBACK_MODEL in steps:
        changed.append(FALLBACK_MODEL)
    return options, tuple(changed)


def _overloaded(expected_wait_seconds: float | None) -> Overloaded:
    """Say when to come again: later where there is more to do, and not all at once."""
    seconds = max(1.0, expected_wait_seconds or 1.0) * random.uniform(1.0, 1.5)  # noqa: S311 — spreads, hides nothing
    return Overloaded(
        "Too many people are asking right now. Try again in a moment.",
        retry_after_seconds=min(_LONGEST_RETRY_SECONDS, math.ceil(seconds)),
    )
