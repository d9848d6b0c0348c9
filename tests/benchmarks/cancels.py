"""`python -m tests.benchmarks cancels`: how soon the model server is rid of an answer that was stopped."""

import argparse
import os
from collections.abc import Sequence

import uvloop

from tests.benchmarks import machine, report
from tests.benchmarks.cancel_checks import Checked, check
from tests.benchmarks.cancel_load import stop_all
from tests.benchmarks.figures import Quantiles
from tests.benchmarks.product import Group, running_product
from tests.own_processes import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_COLUMNS = (
    "cancels", "answers/s", "call to closed connection", "call to 204", "call to `done`",
    "not stopped", "wrong text or count", "left open", "left under way",
    "web CPU each, ms", "worker CPU each, ms", "load average",
)  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    described = machine.describe()
    with running_product() as product:
        [accounts] = product.make_accounts(Group(options.count))
        before = product.read_meter().cpu_seconds
        stoppings = uvloop.run(
            stop_all(
                product.port,
                accounts,
                answers_per_second=options.rate,
                latest_token=options.latest,
                seed=options.seed,
            )
        )
        cpu = {part: seconds - before[part] for part, seconds in product.read_meter().cpu_seconds.items()}
        load_average = os.getloadavg()[0]
        checked = check(product, stoppings)
    text = (
        report.described(described)
        + "\n"
        + report.plain_table(_COLUMNS, [_row(checked, options.rate, cpu, load_average)])
    )
    print(text)
    if options.write:
        report.write_between_markers(DOCUMENT, text, "cancels")
    if checked.faults:
        raise SystemExit("\n".join(checked.faults[:20]))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cancels", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many answers are stopped")
    parser.add_argument("--rate", type=float, default=10, help="answers begun, and stopped, a second")
    parser.add_argument("--latest", type=int, default=100, help="the last token after which one is stopped")
    parser.add_argument("--seed", type=int, default=1, help="chooses the tokens")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args(arguments)


def _row(checked: Checked, rate: float, cpu_seconds: dict[str, float], load_average: float) -> list[str]:
    return [
        f"{checked.count:,}",
        f"{rate:g}",
        report.quantiles(Quantiles.of(checked.closed_ms)),
        report.quantiles(Quantiles.of(checked.answered_ms)),
        report.quantiles(Quantiles.of(checked.done_ms)),
        *map(str, (checked.not_stopped, checked.wrong, checked.left_open, checked.left_under_way)),
        *(f"{cpu_seconds[part] / checked.count * 1000:.0f}" for part in ("web", "worker")),
        f"{load_average:.1f}",
    ]
