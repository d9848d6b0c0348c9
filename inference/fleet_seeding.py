"""The settings' fleet on its way into the tables: what `MODEL_FLEET` names anew comes, what it names no more goes."""

from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from foundation.database import DATABASE_UNREACHABLE, in_database
from inference import catalog
from inference.catalog import Catalog, parse_fleet
from inference.exceptions import InvalidFleet
from inference.models import ModelAlias, ModelVersion, Replica, SeededFleet, VersionWeight
from inference.stored_catalog import refresh_catalog

log = structlog.get_logger(__name__)

type _Named = dict[str, dict[str, catalog.Replica]]
"""Alias → address → what is said of it."""


def seed_fleet() -> list[str]:
    """Apply the settings, where they name a fleet; return what was done, in sentences. Raise `InvalidFleet`."""
    return apply_fleet(settings.MODEL_FLEET, settings.DEFAULT_MODEL) if settings.HAS_MODEL_FLEET else []


def apply_fleet(fleet: str, default_alias: str = "") -> list[str]:
    """Bring the tables from what was said last to what is said now; return what was done, in sentences.

    What staff made or changed stays, and the same words a second time change nothing. Raise `InvalidFleet`.
    """
    wanted = parse_fleet(fleet, default_alias)
    if SeededFleet.objects.filter(fleet=fleet, default_alias=wanted.default_alias).exists():
        return []
    with transaction.atomic():
        last = _locked_last()
        if (last.fleet, last.default_alias) == (fleet, wanted.default_alias):
            return []
        done = _apply(_named_last(last), _named_in(wanted))
        done += _choose_default(last.default_alias, wanted.default_alias)
        last.fleet, last.default_alias = fleet, wanted.default_alias
        last.save()
    log.info("fleet_seeded", changes=len(done))
    return done


@dataclass(slots=True)
class CatalogFollower:
    """Keeps the catalogue current for a process that lives on an event loop."""

    is_seeded: bool = False

    async def begin(self) -> None:
        """Do what can be done at the start; without the database the settings count until it is there."""
        try:
            await self.follow()
        except DATABASE_UNREACHABLE as error:
            log.warning("fleet_not_seeded", error=type(error).__name__)

    async def follow(self) -> None:
        """Seed where that is still to be done, and read. To be called each second."""
        if not self.is_seeded:
            await in_database(seed_fleet)
            self.is_seeded = True
        await refresh_catalog()


def _locked_last() -> SeededFleet:
    """Return what was applied last; until the transaction ends no other process applies anything."""
    SeededFleet.objects.bulk_create([SeededFleet()], ignore_conflicts=True)
    return SeededFleet.objects.select_for_update().get()


def _named_last(last: SeededFleet) -> _Named:
    try:
        return _named_in(parse_fleet(last.fleet)) if last.fleet else {}
    except InvalidFleet as error:  # written when the rules were others
        log.warning("last_fleet_not_read", error=error.message)
        return {}


def _named_in(fleet: Catalog) -> _Named:
    return {model.alias: {replica.url: replica for replica in model.replicas} for model in fleet.models}


def _apply(last: _Named, wanted: _Named) -> list[str]:
    done = []
    for position, (alias, replicas) in enumerate(wanted.items()):
        before = last.get(alias, {})
        if added := [replica for url, replica in replicas.items() if before.get(url) != replica]:
            done += _add(alias, position, added)
    for alias, replicas in last.items():
        if gone := replicas.keys() - wanted.get(alias, {}).keys():
            done += _remove(alias, gone)
        if alias not in wanted:
            done += _remove_if_empty(alias)
    return done


def _add(alias: str, position: int, replicas: list[catalog.Replica]) -> list[str]:
    version = _version_of(alias, position)
    for each in replicas:
        said = {"kind": each.kind.value, "permits": each.permits, "weight": each.weight}
        Replica.objects.update_or_create(version=version, url=each.url, defaults=said)
    return [f"{alias}: {each.url} is there" for each in replicas]


def _version_of(name: str, position: int) -> ModelVersion:
    """Return the version whose replicas the settings name for this alias; made where there is none."""
    alias, _ = ModelAlias.objects.get_or_create(name=name, defaults={"position": position})
    shares = list(alias.shares.select_related("version").order_by("-weight", "pk"))
    for share in shares:
        if share.version.name == name:
            return share.version
    if shares:
        return shares[0].version
    version, _ = ModelVersion.objects.get_or_create(name=name)
    VersionWeight.objects.create(alias=alias, version=version)
    return version


def _remove(alias: str, urls: set[str]) -> list[str]:
    Replica.objects.filter(
        Q(version__name=alias) | Q(version__in=ModelVersion.objects.filter(shares__alias__name=alias)), url__in=urls
    ).delete()
    return [f"{alias}: {url} is gone" for url in sorted(urls)]


def _remove_if_empty(alias: str) -> list[str]:
    ModelVersion.objects.filter(name=alias, replicas=None).delete()
    removed, _ = ModelAlias.objects.filter(name=alias, shares=None).delete()
    return [f"{alias} is gone"] if removed else []


def _choose_default(last: str, wanted: str) -> list[str]:
    """Make the settings' default the default, unless staff have chosen another."""
    current = ModelAlias.objects.filter(is_default=True).first()
    alias = ModelAlias.objects.filter(name=wanted).first()
    if alias is None or alias == current or (current is not None and current.name != last):
        return []
    alias.make_default()
    return [f"{alias} is the default"]
