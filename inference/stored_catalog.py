"""The catalogue as it stands now: the tables' contents, or where they are empty what `MODEL_FLEET` says."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

import structlog
from django.conf import settings
from django.db import connection

from foundation.database import DATABASE_UNREACHABLE, in_database
from inference.catalog import (
    AUTO,
    Capabilities,
    Catalog,
    Model,
    ModelVersion,
    Prices,
    Replica,
    ServerKind,
    is_server_address,
    parse_fleet,
)
from inference.models import ModelAlias, VersionWeight

log = structlog.get_logger(__name__)

HOLD_SECONDS = 1.0


@dataclass(slots=True)
class _Snapshot:
    """What this process last read. `stored` is `None` where the tables are empty, or were never read."""

    stored: Catalog | None = None
    read_at: float | None = None
    reading: Lock = field(default_factory=Lock)

    @property
    def is_fresh(self) -> bool:
        return self.read_at is not None and time.monotonic() - self.read_at < HOLD_SECONDS


_snapshot = _Snapshot()


def current_catalog() -> Catalog:
    """Return the catalogue as of at most a second ago; while the database is away, as it was then.

    On an event loop nothing is read: there it is as old as the last `refresh_catalog`.
    """
    if not _snapshot.is_fresh and not _is_on_an_event_loop():
        # Whoever comes while another thread reads goes on with what is known, unless nothing is.
        _read_again(is_worth_waiting=_snapshot.read_at is None)
    return _snapshot.stored or _parsed(settings.MODEL_FLEET, settings.DEFAULT_MODEL)


async def refresh_catalog() -> None:
    """Read the tables again. A process that lives on a loop does so each second."""
    await in_database(_read_again, is_worth_waiting=False)


def forget_catalog() -> None:
    """Know as little as a process that has just begun."""
    _snapshot.stored = _snapshot.read_at = None


def read_catalog() -> Catalog | None:
    """Return what the tables say now, in four queries; `None` where they offer no model.

    Each query reads one table, in no common transaction: what changes in between is seen a second later.
    """
    aliases = list(ModelAlias.objects.order_by("position", "pk").prefetch_related("shares__version__replicas"))
    names = {alias.pk: alias.name for alias in aliases}
    draining = _draining_addresses(aliases)
    models = tuple(
        Model(alias.name, versions, names.get(alias.fallback_id or 0, ""))
        for alias in aliases
        if (versions := tuple(_versions(alias, draining)))
    )
    return Catalog(models, _default_alias(aliases, models)) if models else None


def _read_again(*, is_worth_waiting: bool) -> None:
    if not _snapshot.reading.acquire(blocking=is_worth_waiting):
        return
    try:
        _snapshot.stored = read_catalog()
    except DATABASE_UNREACHABLE as error:
        if connection.in_atomic_block:  # the transaction is lost, and with it what the caller is doing
            raise
        log.warning("catalog_not_read", error=type(error).__name__)
    finally:
        _snapshot.read_at = time.monotonic()
        _snapshot.reading.release()


def _is_on_an_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@lru_cache(maxsize=4)
def _parsed(text: str, default_alias: str) -> Catalog:
    return parse_fleet(text, default_alias)


def _draining_addresses(aliases: list[ModelAlias]) -> set[str]:
    """Return the servers that drain: one that serves several versions does for all of them."""
    rows = (row for alias in aliases for share in alias.shares.all() for row in share.version.replicas.all())
    return {row.url for row in rows if row.is_draining}


def _versions(alias: ModelAlias, draining: set[str]) -> Iterator[ModelVersion]:
    shares = list(alias.shares.all())
    if not shares:
        _tell_once(alias.name, "it has no version")
    for share in shares:
        if replicas := tuple(_replicas(share, draining)):
            yield _version(share, replicas)
        else:
            _tell_once(share.version.name, "it has no replica")


def _version(share: VersionWeight, replicas: tuple[Replica, ...]) -> ModelVersion:
    row = share.version
    return ModelVersion(
        name=row.name,
        replicas=replicas,
        weight=share.weight,
        model_id=row.model_id,
        revision=row.revision,
        context_tokens=row.context_tokens,
        max_answer_tokens=row.max_answer_tokens,
        tokenizer=row.tokenizer,
        prices=Prices(row.price_in, row.price_cached, row.price_out),
        capabilities=Capabilities(row.has_tools, row.has_vision, row.has_reasoning),
    )


def _replicas(share: VersionWeight, draining: set[str]) -> Iterator[Replica]:
    for row in share.version.replicas.all():
        # Forms and constraints keep these out; what came past them is one replica's fault, not the product's.
        if row.kind not in ServerKind or not is_server_address(row.url):
            _tell_once(row.url, "it has no address or no protocol that is known here")
            continue
        yield Replica(row.url, ServerKind(row.kind), row.weight, row.permits, row.url in draining)


@lru_cache(maxsize=256)
def _tell_once(what: str, why: str) -> None:
    log.warning("left_out_of_catalog", what=what, why=why)


def _default_alias(aliases: list[ModelAlias], models: tuple[Model, ...]) -> str:
    """Return the alias that answers whoever chose none: `auto`, or the default, or else the first."""
    offered = {model.alias for model in models}
    chosen = [AUTO, *(alias.name for alias in aliases if alias.is_default), models[0].alias]
    return next(name for name in chosen if name in offered)
