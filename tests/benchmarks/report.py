"""The figures as a table for people."""

from pathlib import Path

from tests.benchmarks.figures import Quantiles, Row

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
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
    lines = [f"- {name}: {text}" for name, text in machine.items()]
    lines += [f"- {rounds} round{'s' if rounds > 1 else ''}, medians; p50 / p95 / p99 in milliseconds", ""]
    lines += [_line(_COLUMNS), _line(["---"] * len(_COLUMNS))]
    return "\n".join([*lines, *(_line(_cells(row)) for row in rows)]) + "\n"


def write_between_markers(path: Path, text: str) -> None:
    """Replace what stands between the two markers of a document."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"{path} lacks the lines {BEGIN} and {END}.")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def _cells(row: Row) -> list[str]:
    # Where no answer begins within the window, there are no statements of an answer to count.
    statements = f"{row.statements_per_answer:.1f}" if "answers/s" in row.load else "–"
    return [
        row.load,
        _quantiles(row.added_first_token_ms),
        _quantiles(row.direct_token_ms),
        _quantiles(row.product_token_ms),
        _quantiles(row.added_token_ms),
        f"{row.tokens_per_second:,.0f}",
        f"{row.tokens_per_core_second:,.0f}",
        statements,
        str(row.failed),
        f"{row.load_average:.1f}",
    ]


def _quantiles(times: Quantiles) -> str:
    return f"{times.p50:.1f} / {times.p95:.1f} / {times.p99:.1f}"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
