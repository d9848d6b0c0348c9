"""Which models a user may choose, and what is known of them."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.conf import settings

from accounts.exceptions import ModelNotInTier
from accounts.models import Tier
from inference.catalog import AUTO, Capabilities, Model, ModelVersion, Prices
from inference.exceptions import UnknownModel
from inference.fleet_reports import ReplicaReport, last_reports
from inference.stored_catalog import current_catalog

REPORTS_HOLD_SECONDS = 0.5
_SMALL = "small"


@dataclass(frozen=True, slots=True)
class ModelOnOffer:
    """A model as it is shown. `is_ready` says whether one of its replicas answers; `context_tokens` is its window.

    Where it has several versions, it promises what each of them can keep, at the price of the most used one.
    """

    alias: str
    is_default: bool
    is_ready: bool
    context_tokens: int | None
    max_answer_tokens: int | None
    served_model: str | None
    capabilities: Capabilities
    prices: Prices


@dataclass(frozen=True, slots=True)
class Reach:
    """What may answer for a model. `window_tokens` is the largest window, `None` where one is not known.

    `versions` are the names that its answers' versions may have; none where a server has not told what it runs.
    """

    window_tokens: int | None
    versions: frozenset[str]


def models_on_offer(tier: Tier) -> list[ModelOnOffer]:
    """Return the models of a tier, in the fleet's order. The site's default is the tier's, or else the tier's first."""
    catalog, reports = current_catalog(), _reports()
    models = [model for model in catalog.models if tier.allows_model(model.alias)]
    aliases = [model.alias for model in models]
    default = catalog.default_alias if catalog.default_alias in aliases else next(iter(aliases), "")
    return [_on_offer(model, reports, is_default=model.alias == default) for model in models]


def alias_to_use(wanted: str | None, tier: Tier) -> str:
    """Return the alias of the model that answers: the wanted one, or else the default.

    While the default is not there yet (its weights may still be on their way) and another model is, that one answers
    whoever named none. Raise `UnknownModel`, `ModelNotInTier`.
    """
    if wanted and wanted != AUTO:
        check_allowed(wanted, tier)
        return wanted
    offered = models_on_offer(tier)
    if not offered:
        raise _not_in_tier(f"The tier {tier.name} has no model that is there.", offered)
    default = next(model.alias for model in offered if model.is_default)
    ready = [model.alias for model in offered if model.is_ready]
    return default if default in ready or not ready else ready[0]


def check_allowed(wanted: str, tier: Tier) -> None:
    """Raise `UnknownModel` for a model that is not there, `ModelNotInTier` for one that the tier does not have."""
    alias = current_catalog().find(wanted).alias
    if wanted != AUTO and not tier.allows_model(alias):
        raise _not_in_tier(f"The tier {tier.name} does not have the model {alias}.", models_on_offer(tier))


def _not_in_tier(message: str, offered: Iterable[ModelOnOffer]) -> ModelNotInTier:
    return ModelNotInTier(message, param="model", details={"allowed": [AUTO, *(model.alias for model in offered)]})


def background_alias() -> str:
    """Return the alias that writes titles and summaries. Raise `UnknownModel` where there is no model at all.

    One that is set but not in the catalogue (any more) stops no title: then it is as if none were set.
    """
    catalog = current_catalog()
    aliases = {model.alias for model in catalog.models}
    for alias in (settings.BACKGROUND_MODEL, _SMALL):
        if alias in aliases:
            return alias
    return catalog.find(None).alias


def window_tokens() -> Callable[[str], int | None]:
    """Return a function that gives a model's window by its alias; the reports are read once for all calls."""
    catalog, reports = current_catalog(), _reports()

    def find(alias: str) -> int | None:
        try:
            return _on_offer(catalog.find(alias), reports).context_tokens
        except UnknownModel:
            return None

    return find


def most_answer_tokens(alias: str) -> int | None:
    """Return the longest answer that every version of the model may give; `None` where none is limited.

    Raise `UnknownModel`.
    """
    return _smallest(version.max_answer_tokens for version in _in_use(current_catalog().find(alias)))


def reach_of(alias: str) -> Reach:
    """Return what any replica of a model may do. Raise `UnknownModel`."""
    model, reports = current_catalog().find(alias), _reports()
    windows: list[int | None] = []
    names: set[str | None] = set()
    for version in model.versions:
        for replica in version.replicas:
            report = reports.get(replica.url)
            windows.append(_smallest([version.context_tokens, report.max_total_tokens if report else None]))
            names.add(version.name if version.is_pinned else report.model_id if report else None)
    is_bounded, is_named = all(windows), None not in names
    return Reach(
        window_tokens=max(filter(None, windows), default=None) if is_bounded else None,
        versions=frozenset(name for name in names if name) if is_named else frozenset(),
    )


def _on_offer(model: Model, reports: dict[str, ReplicaReport], *, is_default: bool = False) -> ModelOnOffer:
    versions = _in_use(model)
    known = [reports[replica.url] for replica in model.replicas if replica.url in reports]
    windows = [report.max_total_tokens for report in known] + [version.context_tokens for version in versions]
    abilities = [version.capabilities for version in versions]
    return ModelOnOffer(
        alias=model.alias,
        is_default=is_default,
        is_ready=any(report.is_healthy for report in known),
        context_tokens=_smallest(windows),
        max_answer_tokens=_smallest(version.max_answer_tokens for version in versions),
        served_model=next((report.model_id for report in known if report.model_id), None),
        capabilities=Capabilities(
            tools=all(each.tools for each in abilities),
            vision=all(each.vision for each in abilities),
            reasoning=all(each.reasoning for each in abilities),
        ),
        prices=max(versions, key=lambda version: version.weight).prices,
    )


def _in_use(model: Model) -> list[ModelVersion]:
    """Return the versions that get conversations: those without weight only where there is no other."""
    return [version for version in model.versions if version.weight] or list(model.versions)


def _smallest(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number), default=None)


@dataclass(slots=True)
class _LastReports:
    """What the workers told, as this process last read it: they tell it every few seconds, and messages are many."""

    reports: dict[str, ReplicaReport] = field(default_factory=dict)
    read_at: float = -math.inf


_last = _LastReports()


def forget_reports() -> None:
    """Know as little of the workers' reports as a process that has just begun."""
    _last.read_at = -math.inf


def _reports() -> dict[str, ReplicaReport]:
    if time.monotonic() - _last.read_at >= REPORTS_HOLD_SECONDS:
        _last.reports = last_reports()
        _last.read_at = time.monotonic()
    return _last.reports
