"""What a simulation measures, and the table of it."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev

_HEAD = (
    "| scenario | policy | warm follow-ups | could be warm | first token p50 / p99 | whole answer p50 / p99"
    " | p99 of both, least loaded = 1 | busy | imbalance |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(slots=True)
class Results:
    """One policy in one scenario."""

    follow_ups: int = 0
    warm: int = 0
    possible: int = 0
    first_token_seconds: "array[float]" = field(default_factory=lambda: array("f"))
    answer_seconds: "array[float]" = field(default_factory=lambda: array("f"))
    busy_shares: "array[float]" = field(default_factory=lambda: array("f"))
    imbalances: "array[float]" = field(default_factory=lambda: array("f"))

    def note_follow_up(self, *, is_warm: bool, could_be_warm: bool) -> None:
        self.follow_ups += 1
        self.warm += is_warm
        self.possible += could_be_warm

    def note_answer(self, first_token_seconds: float, answer_seconds: float) -> None:
        self.first_token_seconds.append(first_token_seconds)
        self.answer_seconds.append(answer_seconds)

    def note_loads(self, busy_shares: list[float]) -> None:
        """Note at one moment what share of each replica's permits is in use."""
        mean = fmean(busy_shares)
        self.busy_shares.append(mean)
        self.imbalances.append(pstdev(busy_shares) / (mean or 1.0))

    def figures(self) -> "Figures":
        """Return the figures of all that was noted."""
        follow_ups = max(1, self.follow_ups)
        return Figures(
            answers=len(self.answer_seconds),
            warm_share=self.warm / follow_ups,
            possible_share=self.possible / follow_ups,
            first_token_p50=_quantile(self.first_token_seconds, 0.5),
            first_token_p99=_quantile(self.first_token_seconds, 0.99),
            answer_p50=_quantile(self.answer_seconds, 0.5),
            answer_p99=_quantile(self.answer_seconds, 0.99),
            busy_share=fmean(self.busy_shares) if self.busy_shares else 0.0,
            imbalance=fmean(self.imbalances) if self.imbalances else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """What is left of one policy's results in one scenario. Times are in seconds.

    `busy_share` is the share of permits in use; `imbalance` how far the replicas are apart in it: standard deviation
    by mean.
    """

    answers: int
    warm_share: float
    possible_share: float
    first_token_p50: float
    first_token_p99: float
    answer_p50: float
    answer_p99: float
    busy_share: float
    imbalance: float


def _quantile(values: "array[float]", share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def table(rows: Sequence[tuple[str, dict[str, Figures]]], reference: str) -> str:
    """Return a Markdown table of each scenario's figures by policy."""
    lines = [line for title, by_policy in rows for line in _lines(title, by_policy, by_policy[reference])]
    return "\n".join([_HEAD, *lines])


def _lines(title: str, by_policy: dict[str, Figures], least: Figures) -> Iterator[str]:
    for policy, each in by_policy.items():
        cells = (
            title,
            policy,
            f"{each.warm_share:.1%}",
            f"{each.possible_share:.1%}",
            f"{each.first_token_p50 * 1000:.0f} / {each.first_token_p99 * 1000:.0f} ms",
            f"{each.answer_p50:.2f} / {each.answer_p99:.2f} s",
            f"{each.first_token_p99 / least.first_token_p99:.2f}, {each.answer_p99 / least.answer_p99:.2f}",
            f"{each.busy_share:.0%}",
            f"{each.imbalance:.2f}",
        )
        yield f"| {' | '.join(cells)} |"
