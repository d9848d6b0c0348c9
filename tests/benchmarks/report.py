"""The figures as a table for people."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from tests.benchmarks.figures import Quantiles, Row

_COLUMNS = (
    "load",
    "added time to first token",
    "later token, direct",
    "later token, product",
    "added per later token",
    "tokens/s",
    "tokens/s per core",
    "SQL per answer",
    "failed",
    "load average",
)


def table(rows: list[Row], machine: dict[str, str], rounds: int) -> str:
    """Return the machine's description and the table, as Markdown."""
    notes = f"- {rounds} round{'s' if rounds > 1 else ''}, medians; p50 / p95 / p99 in milliseconds\n\n"
    return described(machine) + notes + plain_table(_COLUMNS, [_cells(row) for row in rows])


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    return "\n".join(_line(cells) for cells in (columns, ["---"] * len(columns), *rows)) + "\n"


def described(machine: dict[str, str]) -> str:
    """Return what the figures were measured on, as a list."""
    return "".join(f"- {name}: {text}\n" for name, text in machine.items())


def write_between_markers(path: Path, text: str, name: str) -> None:
    """Replace what stands between a document's two markers of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = path.read_text().partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise SystemExit(f"{path} lacks the lines {begin} and {end}.")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")


def quantiles(times: Quantiles, *, digits: int = 1) -> str:
    """Return p50 / p95 / p99 in words; a dash where there was nothing to measure."""
    return "–" if isnan(times.p50) else f"{times.p50:.{digits}f} / {times.p95:.{digits}f} / {times.p99:.{digits}f}"


def _cells(row: Row) -> list[str]:
    # Where no answer begins within the window, there are no statements of an answer to count.
    statements = f"{row.statements_per_answer:.1f}" if "answers/s" in row.load else "–"
    return [
        row.load,
        quantiles(row.added_first_token_ms),
        quantiles(row.direct_token_ms),
        quantiles(row.product_token_ms),
        quantiles(row.added_token_ms),
        f"{row.tokens_per_second:,.0f}",
        f"{row.tokens_per_core_second:,.0f}",
        statements,
        str(row.failed),
        f"{row.load_average:.1f}",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
