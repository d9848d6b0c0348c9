"""`python -m inference.simulation`: compares ways to choose a replica, and prints a table."""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

from inference.simulation import scenarios
from inference.simulation.engine import simulate
from inference.simulation.policies import POLICIES
from inference.simulation.results import Figures, table
from inference.simulation.scenarios import Scenario

_REFERENCE = "least loaded"
_DOCUMENT = Path(__file__).parents[2] / "docs" / "routing.md"
_BEGIN, _END = "<!-- simulation: begin -->", "<!-- simulation: end -->"


def main() -> None:
    options = _options()
    every = scenarios.of_size(options.replicas, options.conversations)
    text = compared([each for each in every if options.only in each.title], processes=options.processes)
    size = f"{options.replicas:,} replicas, {options.conversations:,} conversations, {scenarios.ALL[0].workers} workers"
    print(f"{size}\n\n{text}")
    if options.write:
        _write(f"{size}.\n\n{text}")


def _write(text: str) -> None:
    before, begin, rest = _DOCUMENT.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    _DOCUMENT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def compared(chosen: Sequence[Scenario], *, processes: int) -> str:
    """Run every policy in every scenario and return the table."""
    runs = list(product(chosen, POLICIES))
    with ProcessPoolExecutor(processes) as pool:
        figures = list(pool.map(_figures, *zip(*runs, strict=True)))
    measured = {(scenario.title, policy): each for (scenario, policy), each in zip(runs, figures, strict=True)}
    rows = [(each.title, {policy: measured[each.title, policy] for policy in POLICIES}) for each in chosen]
    return table(rows, _REFERENCE)


def _figures(scenario: Scenario, policy: str) -> Figures:
    return simulate(scenario, POLICIES[policy]).figures()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m inference.simulation", description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000)
    parser.add_argument("--conversations", type=int, default=200_000, help="200 a replica make eight minutes")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the scenarios with TEXT in their title")
    parser.add_argument("--processes", type=int, default=2, help="how many runs at once")
    parser.add_argument("--write", action="store_true", help="put the table into docs/routing.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
