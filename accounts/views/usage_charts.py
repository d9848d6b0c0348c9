"""The geometry of the charts of usage, and what is said beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from accounts.usage_periods import Period
from accounts.usage_reports import Row, Sums

_STEP = 10.0
_BAR = 7.0
_HEIGHT = 100.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar; `kind` is `cached`, `read` or `written`."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One day."""

    day: date
    sums: Sums
    x: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class DayChart:
    """Bars from left to right, in a box of `width` times 100; `top` is how many tokens its height stands for."""

    bars: tuple[Bar, ...]
    width: float
    bar_width: float
    top: int

    @property
    def half(self) -> int:
        return self.top // 2

    @property
    def middle_day(self) -> date:
        return self.bars[len(self.bars) // 2].day


@dataclass(frozen=True, slots=True)
class Share:
    """A row of a table, its name, and how long its bar is, in hundredths of the longest."""

    name: str
    link: str
    sums: Sums
    width: float


def day_chart(period: Period, rows: Sequence[Row[date]]) -> DayChart:
    """Return a bar for each day of the period, also for those on which nothing was used."""
    used = {row.key: row.sums for row in rows}
    top = _round_above(max((sums.tokens for sums in used.values()), default=0))
    bars = tuple(
        Bar(day, sums := used.get(day, Sums()), number * _STEP + (_STEP - _BAR) / 2, _segments(sums, top))
        for number, day in enumerate(period.days)
    )
    return DayChart(bars, len(bars) * _STEP, _BAR, top)


def shares(named: Sequence[tuple[str, str, Sums]]) -> list[Share]:
    """Return rows of a name, a link and sums each with its bar."""
    longest = max((sums.tokens for _, _, sums in named), default=0) or 1
    return [Share(name, link, sums, round(100 * sums.tokens / longest, 2)) for name, link, sums in named]


def _segments(sums: Sums, top: int) -> tuple[Segment, ...]:
    segments, below = [], 0
    for kind, tokens in (
        ("cached", sums.tokens_cached),
        ("read", sums.tokens_in - sums.tokens_cached),
        ("written", sums.tokens_out),
    ):
        below += tokens
        if tokens:
            segments.append(Segment(kind, round(_HEIGHT * (1 - below / top), 3), round(_HEIGHT * tokens / top, 3)))
    return tuple(segments)


def _round_above(tokens: int) -> int:
    """Return the smallest of 10, 20, 50, 100, … that is not less."""
    scale = 10
    while True:
        for factor in (1, 2, 5):
            if factor * scale >= tokens:
                return factor * scale
        scale *= 10
