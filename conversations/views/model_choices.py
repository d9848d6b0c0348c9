"""Which models the composer offers, and which of them are there yet."""

from dataclasses import dataclass

from accounts.models import Tier
from conversations.models_on_offer import models_on_offer


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One entry of the composer's list."""

    alias: str
    is_ready: bool
    is_chosen: bool


def model_choices(tier: Tier, wanted: str = "") -> list[ModelChoice]:
    """Return the tier's models; chosen is the wanted one, or else the default, or else the first that is ready."""
    offered = models_on_offer(tier)
    default = next((model.alias for model in offered if model.is_default), "")
    preferred = wanted if any(model.alias == wanted for model in offered) else default
    ready = [model.alias for model in offered if model.is_ready]
    # Where nothing is known to be ready, a message that has to wait is better than one that cannot be sent.
    chosen = preferred if preferred in ready or not ready else ready[0]
    return [ModelChoice(m.alias, m.is_ready or not ready, is_chosen=m.alias == chosen) for m in offered]
