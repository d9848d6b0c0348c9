"""The figures of an overload: how much of the capacity was of use, who got it, and how long they waited."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks import report
from tests.benchmarks.figures import Quantiles
from tests.benchmarks.overload_load import CROWDS, SERVICE_SECONDS, Load, Sending

_RAMP_SECONDS = 5.0
"""At the beginning nothing is full: what ends then says little."""
_COLUMNS = (
    "who", "sent/s", "admitted", "refused", "failed after admission", "useful answers/s", "share of capacity",
    "wait of the admitted, s", "refused within, ms", "kept short",
)  # fmt: skip


def of(load: Load, sendings: Sequence[Sending], seen: Mapping[str, Any], cpu_seconds: Mapping[str, float]) -> str:
    """Return the figures as Markdown. `seen` is the model server's report."""
    window = _Window(load, sendings)
    rows = [_row(crowd.name, [each for each in sendings if each.crowd == crowd], window) for crowd in CROWDS]
    rows.append(_row("all", sendings, window))
    return "\n".join(
        [*_summary(sendings, window, seen), _cores(load, cpu_seconds), "", report.plain_table(_COLUMNS, rows)]
    )


class _Window:
    """From when on, and until when, ends of answers count."""

    def __init__(self, load: Load, sendings: Sequence[Sending]) -> None:
        first_ns = min(each.answer.due_ns for each in sendings)
        self.load = load
        self._from_ns = first_ns + int(_RAMP_SECONDS * 1e9)
        self._to_ns = first_ns + int(load.seconds * 1e9)

    def useful_per_second(self, sendings: Sequence[Sending]) -> float:
        ended = sum(each.is_useful and self._from_ns <= each.ended_ns < self._to_ns for each in sendings)
        return ended / (self.load.seconds - _RAMP_SECONDS)


def _summary(sendings: Sequence[Sending], window: _Window, seen: Mapping[str, Any]) -> list[str]:
    paid = [each for each in sendings if each.is_useful and each.crowd.priority_class in ("enterprise", "plus")]
    goodput = window.useful_per_second(sendings) / window.load.capacity_per_second
    refused = Quantiles.of(each.answered_ms for each in sendings if each.is_refused)
    admitted = [each for each in sendings if not each.is_refused]
    sent = len(sendings) / window.load.seconds
    return [
        f"- capacity: {window.load.capacity_per_second:g} answers/s of {SERVICE_SECONDS:g} s; sent: {sent:.1f}/s",
        f"- goodput: {goodput:.1%} of the capacity",
        f"- wait of the paid who were admitted, p99: {Quantiles.of(each.waited_seconds for each in paid).p99:.2f} s",
        f"- refusals, p99: {refused.p99:.1f} ms",
        f"- failed or timed out after admission: {sum(not each.is_useful for each in admitted)}",
        f"- requests that reached the model server: {_chats(seen)}, for {len(admitted)} messages that were admitted",
    ]


def _cores(load: Load, cpu_seconds: Mapping[str, float]) -> str:
    return "- cores in use: " + ", ".join(f"{part} {used / load.seconds:.2f}" for part, used in cpu_seconds.items())


def _chats(seen: Mapping[str, Any]) -> int:
    return sum(record["prompt"].startswith("@twin") for record in seen["requests"])


def _row(name: str, sendings: Sequence[Sending], window: _Window) -> list[str]:
    useful = [each for each in sendings if each.is_useful]
    refused = [each for each in sendings if each.is_refused]
    waits = Quantiles.of(each.waited_seconds for each in useful)
    refusals = Quantiles.of(each.answered_ms for each in refused)
    per_second = window.useful_per_second(sendings)
    return [
        name,
        f"{len(sendings) / window.load.seconds:.1f}",
        f"{(len(sendings) - len(refused)) / len(sendings):.0%}",
        str(len(refused)),
        str(len(sendings) - len(refused) - len(useful)),
        f"{per_second:.2f}",
        f"{per_second / window.load.capacity_per_second:.0%}",
        report.quantiles(waits, digits=2),
        report.quantiles(refusals),
        str(sum(each.is_shortened for each in sendings)),
    ]
