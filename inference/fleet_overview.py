"""The fleet as staff see it: the catalogue's rows beside what the workers last reported of each server."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from inference import catalog
from inference.fleet_reports import ReplicaReport, last_reports
from inference.models import ModelAlias, ModelVersion, Replica
from inference.stored_catalog import current_catalog

type Reports = dict[str, ReplicaReport]

_UNKNOWN = "unknown"
_NO_REPORT = "No worker has told of it in the last seconds."


@dataclass(frozen=True, slots=True)
class ReplicaStanding:
    """One server. `state` is a report's, or `draining` where staff said so; `why` is a sentence, or empty.

    What nobody has told is `None`. `row_id` is `None` where the settings name the fleet, not the tables.
    """

    row_id: int | None
    url: str
    kind: str
    permits: int | None
    is_draining: bool
    state: str
    why: str = ""
    in_flight: int | None = None
    foreign_load: float | None = None
    tokens_per_second: float | None = None
    server: str = ""
    served: str = ""
    seen_at: datetime | None = None

    @property
    def state_in_words(self) -> str:
        return self.state.replace("_", " ")


@dataclass(frozen=True, slots=True)
class VersionStanding:
    """A version with its servers. `share_percent` is its part of the alias's conversations; `pinned` its identity."""

    row_id: int | None
    name: str
    share_percent: float | None
    pinned: str
    replicas: tuple[ReplicaStanding, ...]


@dataclass(frozen=True, slots=True)
class AliasStanding:
    """What users choose. Versions that no alias shares stand under the empty name."""

    row_id: int | None
    name: str
    is_default: bool
    versions: tuple[VersionStanding, ...] = field(default=())


def fleet_overview() -> list[AliasStanding]:
    """Return everything there is, in the users' order, and at the end what no alias offers."""
    reports = last_reports()
    aliases = list(ModelAlias.objects.prefetch_related("shares__version__replicas"))
    spare = list(ModelVersion.objects.filter(shares=None).prefetch_related("replicas"))
    if not aliases and not spare:
        return [_of_settings(model, reports) for model in current_catalog().models]
    standings = [_of_alias(alias, reports) for alias in aliases]
    if spare:
        standings.append(AliasStanding(None, "", False, tuple(_of_version(each, None, reports) for each in spare)))
    return standings


def replica_standing(row: Replica, reports: Reports) -> ReplicaStanding:
    """Return how a server of the tables fares."""
    setup = catalog.Replica(row.url, catalog.ServerKind(row.kind), row.weight, row.permits, row.is_draining)
    return _standing(setup, row.pk, reports.get(row.url))


def _of_alias(alias: ModelAlias, reports: Reports) -> AliasStanding:
    shares = list(alias.shares.all())
    parts = _percents(share.weight for share in shares)
    versions = (_of_version(share.version, part, reports) for share, part in zip(shares, parts, strict=True))
    return AliasStanding(alias.pk, alias.name, alias.is_default, tuple(versions))


def _of_version(version: ModelVersion, percent: float | None, reports: Reports) -> VersionStanding:
    replicas = tuple(replica_standing(row, reports) for row in version.replicas.all())
    return VersionStanding(version.pk, version.name, percent, _identity(version.model_id, version.revision), replicas)


def _of_settings(model: catalog.Model, reports: Reports) -> AliasStanding:
    is_default = model.alias == current_catalog().default_alias
    versions = (
        VersionStanding(
            None,
            version.name,
            100.0,
            "",
            tuple(_standing(replica, None, reports.get(replica.url)) for replica in version.replicas),
        )
        for version in model.versions
    )
    return AliasStanding(None, model.alias, is_default, tuple(versions))


def _standing(replica: catalog.Replica, row_id: int | None, report: ReplicaReport | None) -> ReplicaStanding:
    told = report or ReplicaReport(is_healthy=False, state=_UNKNOWN, why=_NO_REPORT)
    return ReplicaStanding(
        row_id=row_id,
        url=replica.url,
        kind=replica.kind.value,
        permits=replica.permits or (told.permits or None),
        is_draining=replica.is_draining,
        state="draining" if replica.is_draining else told.state,
        why=told.why,
        in_flight=told.in_flight if report else None,
        foreign_load=told.foreign_load if report else None,
        tokens_per_second=told.tokens_per_second if report else None,
        server=told.version or "",
        served=_identity(told.model_id, told.model_sha),
        seen_at=datetime.fromtimestamp(told.seen_at, UTC) if told.seen_at else None,
    )


def _identity(model_id: str | None, revision: str | None) -> str:
    return " at ".join(part for part in (model_id, revision) if part)


def _percents(weights: Iterable[int]) -> list[float]:
    known = list(weights)
    whole = sum(known)
    return [100 * weight / whole if whole else 100 / len(known) for weight in known]
