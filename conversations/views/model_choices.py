"""Which models the composer offers, and which of them are there yet."""

from dataclasses import dataclass

from foundation.redis import REDIS_UNREACHABLE, shared_client
from inference.catalog import Model, current_catalog
from inference.fleet import ReplicaReport, read_reports


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One entry of the composer's list."""

    alias: str
    is_ready: bool
    is_chosen: bool


def model_choices(wanted: str = "") -> list[ModelChoice]:
    """Return every model; chosen is the wanted one, or else the site's default, or else the first that is ready."""
    catalog = current_catalog()
    reports = _reports()
    ready = {model.alias: _is_ready(model, reports) for model in catalog.models}
    preferred = wanted if wanted in ready else catalog.default_alias
    first_ready = next((alias for alias, is_ready in ready.items() if is_ready), preferred)
    chosen = preferred if ready[preferred] else first_ready
    return [ModelChoice(alias, is_ready, is_chosen=alias == chosen) for alias, is_ready in ready.items()]


def _reports() -> dict[str, ReplicaReport]:
    try:
        return read_reports(shared_client())
    except REDIS_UNREACHABLE:
        return {}


def _is_ready(model: Model, reports: dict[str, ReplicaReport]) -> bool:
    # Without any report nothing is known; a message that has to wait is better than one that cannot be sent.
    return not reports or any(reports[replica.url].is_healthy for replica in model.replicas if replica.url in reports)
