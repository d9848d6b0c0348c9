"""From runs to figures: quantiles of one run, differences within a round, medians over the rounds."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import nan
from statistics import median
from typing import Any

from tests.benchmarks.loads import Run
from tests.benchmarks.product import Reading

_NO_STATEMENTS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SELECT $2 FROM ONLY")
"""What opens and ends a transaction, and PostgreSQL's own checks of foreign keys."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Milliseconds below which 50, 95 and 99 percent lie."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Quantiles":
        ordered = sorted(values) or [nan]
        return cls(*(ordered[round(share * (len(ordered) - 1))] for share in (0.50, 0.95, 0.99)))

    def minus(self, other: "Quantiles") -> "Quantiles":
        return Quantiles(self.p50 - other.p50, self.p95 - other.p95, self.p99 - other.p99)

    @classmethod
    def median_of(cls, several: list["Quantiles"]) -> "Quantiles":
        return cls(*(median(getattr(each, name) for each in several) for name in ("p50", "p95", "p99")))


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run showed; `token_ms` are the one-way delays of all tokens but the first ones."""

    answers: int
    failed: int
    first_token_ms: Quantiles
    token_ms: Quantiles
    tokens_per_second: float
    cpu_seconds: dict[str, float]
    tokens_per_core_second: float
    statements_per_answer: float
    statements: dict[str, float]
    sent_late_ms: float


@dataclass(frozen=True, slots=True)
class Round:
    """One load on both paths, the one right after the other."""

    load: str
    direct: Measured
    product: Measured
    load_average: float


@dataclass(frozen=True, slots=True)
class Row:
    """A load's medians over its rounds. `added` figures are differences of the paths' quantiles within each round."""

    load: str
    added_first_token_ms: Quantiles
    direct_token_ms: Quantiles
    product_token_ms: Quantiles
    added_token_ms: Quantiles
    tokens_per_second: float
    tokens_per_core_second: float
    statements_per_answer: float
    failed: int
    load_average: float


def measured(run: Run[Reading]) -> Measured:
    """Return the figures of a run. Without one whole answer there are none: that is an error."""
    whole = [answer for answer in run.answers if answer.is_whole(run.load.tokens)]
    failed = len(run.answers) - len(whole)
    if not whole:
        broken = next(answer for answer in run.answers if not answer.is_whole(run.load.tokens))
        raise SystemExit(f"{run.load.title}: every answer failed, among them: {broken.body[-500:]!r}")
    begun = [
        answer for answer in whole if not run.load.first_tokens_in_window or run.from_ns <= answer.asked_ns < run.to_ns
    ]
    tokens = [answer.tokens() for answer in whole]
    within = [token for each in tokens for token in each if run.from_ns <= token.arrived_ns < run.to_ns]
    later = [token for each in tokens for token in each[1:] if run.from_ns <= token.sent_ns < run.to_ns]
    cpu = {part: run.after.cpu_seconds[part] - used for part, used in run.before.cpu_seconds.items()}
    asked = sum(run.from_ns <= answer.asked_ns < run.to_ns for answer in whole)
    statements = _statements(run, asked)
    return Measured(
        answers=len(run.answers),
        failed=failed,
        first_token_ms=Quantiles.of(answer.first_token_ms() for answer in begun),
        token_ms=Quantiles.of(token.delay_ms for token in later),
        tokens_per_second=len(within) / ((run.to_ns - run.from_ns) / 1e9),
        cpu_seconds=cpu,
        tokens_per_core_second=len(within) / max(0.001, cpu["web"] + cpu["worker"]),
        statements_per_answer=sum(statements.values()),
        statements=statements,
        sent_late_ms=max((answer.asked_ns - answer.due_ns) / 1e6 for answer in run.answers),
    )


def _statements(run: Run[Reading], answers: int) -> dict[str, float]:
    """Return statements per answer, by text."""
    counts = {
        query: (calls - run.before.statements.get(query, 0)) / max(1, answers)
        for query, calls in run.after.statements.items()
        if not query.startswith(_NO_STATEMENTS)
    }
    return {query: count for query, count in sorted(counts.items(), key=lambda each: -each[1]) if count}


def row_of(rounds: list[Round]) -> Row:
    """Return the medians of one load's rounds."""
    products = [each.product for each in rounds]
    return Row(
        load=rounds[0].load,
        added_first_token_ms=Quantiles.median_of(
            [each.product.first_token_ms.minus(each.direct.first_token_ms) for each in rounds]
        ),
        direct_token_ms=Quantiles.median_of([each.direct.token_ms for each in rounds]),
        product_token_ms=Quantiles.median_of([each.token_ms for each in products]),
        added_token_ms=Quantiles.median_of([each.product.token_ms.minus(each.direct.token_ms) for each in rounds]),
        tokens_per_second=median(each.tokens_per_second for each in products),
        tokens_per_core_second=median(each.tokens_per_core_second for each in products),
        statements_per_answer=median(each.statements_per_answer for each in products),
        failed=sum(each.failed for each in products) + sum(each.direct.failed for each in rounds),
        load_average=median(each.load_average for each in rounds),
    )


def as_json(rounds: list[Round], rows: list[Row], machine: dict[str, str]) -> dict[str, Any]:
    """Return everything, for a file."""
    return {
        "machine": machine,
        "rows": [asdict(row) for row in rows],
        "rounds": [asdict(each) for each in rounds],
    }
