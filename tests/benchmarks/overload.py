"""`python -m tests.benchmarks overload`: what becomes of three times as many messages as there is capacity for."""

import argparse
import os
from collections.abc import Sequence

import uvloop

from inference.testing.settings import TwinSettings
from tests.benchmarks import machine, overload_figures, report
from tests.benchmarks.overload_load import CROWDS, Load, send_all
from tests.benchmarks.product import Group, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "overload.md"


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    load = Load(options.permits, options.seconds, options.seed)
    described = machine.describe()
    with running_product([TwinSettings(permits=2 * load.permits)], permits=load.permits) as product:
        groups = [Group(len(load.moments(crowd)), crowd.users, crowd.priority_class) for crowd in CROWDS]
        accounts = dict(zip(CROWDS, product.make_accounts(*groups), strict=True))
        before = product.read_meter().cpu_seconds
        sendings = uvloop.run(send_all(product.port, load, accounts))
        used = {part: seconds - before[part] for part, seconds in product.read_meter().cpu_seconds.items()}
        described["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
        seen = product.twins[0].report()
    text = f"{report.described(described)}\n{overload_figures.of(load, sendings, seen, used)}"
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "overload")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks overload", description=__doc__)
    parser.add_argument("--permits", type=int, default=8, help="answers at once, of 0.8 s each")
    parser.add_argument("--seconds", type=float, default=90, help="how long messages are sent")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/overload.md")
    return parser.parse_args(arguments)
