"""`python -m tests.benchmarks cancels`: how soon the model server is rid of an answer that was stopped."""

import argparse
import os
from collections.abc import Sequence

import uvloop

from tests.benchmarks import machine, report
from tests.benchmarks.cancel_checks import Checked, CheckedQueued, check, check_queued
from tests.benchmarks.cancel_load import Stopping, stop_all
from tests.benchmarks.figures import Quantiles
from tests.benchmarks.product import Account, Group, Product, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_COLUMNS = (
    "cancels", "answers/s", "call to closed connection", "call to 204", "call to `done`",
    "not stopped", "wrong text or count", "left open", "left under way", "permits left",
    "web CPU each, ms", "worker CPU each, ms", "load average",
)  # fmt: skip
_QUEUED_COLUMNS = ("cancels while queued", "answers/s", "call to 204", "not stopped", "reached the model server")


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product() as product:
        running, queued = product.make_accounts(Group(options.count), Group(options.queued))
        product.drain(is_draining=True)
        waiting = check_queued(product, _stop(product, queued, options.rate, latest_token=0, seed=options.seed))
        product.drain(is_draining=False)
        before = product.read_meter().cpu_seconds
        stopped = _stop(product, running, options.rate, latest_token=options.latest, seed=options.seed)
        cpu = {part: seconds - before[part] for part, seconds in product.read_meter().cpu_seconds.items()}
        load_average = os.getloadavg()[0]
        checked = check(product, stopped)
    tables = [
        report.described(described),
        report.plain_table(_COLUMNS, [_row(checked, options.rate, cpu, load_average)]),
        report.plain_table(_QUEUED_COLUMNS, [_queued_row(waiting, options.rate)]),
    ]
    text = "\n".join(tables)
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "cancels")
    if checked.faults:
        raise SystemExit("\n".join(checked.faults[:20]))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cancels", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many answers are stopped while they are written")
    parser.add_argument("--queued", type=int, default=200, help="how many are stopped while they wait")
    parser.add_argument("--rate", type=float, default=10, help="answers begun, and stopped, a second")
    parser.add_argument("--latest", type=int, default=100, help="the last token after which one is stopped")
    parser.add_argument("--seed", type=int, default=1, help="chooses the tokens")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser.parse_args(arguments)


def _stop(
    product: Product, accounts: Sequence[Account], per_second: float, *, latest_token: int, seed: int
) -> list[Stopping]:
    return uvloop.run(
        stop_all(product.port, accounts, answers_per_second=per_second, latest_token=latest_token, seed=seed)
    )


def _row(checked: Checked, rate: float, cpu_seconds: dict[str, float], load_average: float) -> list[str]:
    left = checked.left_open, checked.left_under_way, checked.permits_held
    return [
        f"{checked.count:,}",
        f"{rate:g}",
        report.quantiles(Quantiles.of(checked.closed_ms)),
        report.quantiles(Quantiles.of(checked.answered_ms)),
        report.quantiles(Quantiles.of(checked.done_ms)),
        *map(str, (checked.not_stopped, checked.wrong, *left)),
        *(f"{cpu_seconds[part] / checked.count * 1000:.0f}" for part in ("web", "worker")),
        f"{load_average:.1f}",
    ]


def _queued_row(checked: CheckedQueued, rate: float) -> list[str]:
    times = report.quantiles(Quantiles.of(checked.answered_ms))
    return [f"{checked.count:,}", f"{rate:g}", times, str(checked.not_stopped), str(checked.reached)]
