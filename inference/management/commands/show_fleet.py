"""`manage.py show_fleet`: which model servers there are, and how each fares."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from inference.exceptions import InvalidFleet
from inference.fleet_overview import AliasStanding, ReplicaStanding, VersionStanding, fleet_overview

_HEAD = ("MODEL", "VERSION", "SHARE", "REPLICA", "STATE", "LOAD", "FOREIGN", "TOKENS/S", "SERVER", "SERVES", "WHY")


class Command(BaseCommand):
    help = "Show every model, its versions and their servers, as the workers reported them last."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print it for a program.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            overview = fleet_overview()
        except InvalidFleet as error:
            self.stderr.write(error.message)
            raise SystemExit(2) from error
        if options["json"]:
            self.stdout.write(orjson.dumps([asdict(alias) for alias in overview], option=orjson.OPT_INDENT_2).decode())
        else:
            for line in _table([_HEAD, *_lines(overview)]):
                self.stdout.write(line)


def _lines(overview: Sequence[AliasStanding]) -> Iterator[tuple[str, ...]]:
    for alias in overview:
        name = f"{alias.name or '-'}{' (default)' if alias.is_default else ''}"
        if not alias.versions:
            yield (name, *["-"] * (len(_HEAD) - 1))
        for version in alias.versions:
            share = "-" if version.share_percent is None else f"{version.share_percent:.0f}%"
            for replica in version.replicas or [None]:
                yield (name, _named(version), share, *_facts(replica))


def _named(version: VersionStanding) -> str:
    return f"{version.name} [{version.pinned}]" if version.pinned else version.name


def _facts(replica: ReplicaStanding | None) -> tuple[str, ...]:
    if replica is None:
        return ("-", "no replica", "-", "-", "-", "-", "-", "")
    return (
        replica.url,
        replica.state,
        f"{_number(replica.in_flight)}/{_number(replica.permits)}",
        _number(replica.foreign_load),
        _number(replica.tokens_per_second),
        replica.server or "-",
        replica.served or "-",
        replica.why,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
