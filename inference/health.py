"""Whether a replica may be asked: a circuit breaker that starts slowly after every repair. It is told the time."""

import math
from dataclasses import dataclass, field
from enum import StrEnum


class HealthState(StrEnum):
    """Where a replica stands between trusted and left out."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    SLOW_START = "slow_start"
    EJECTED = "ejected"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerTimes:
    """How long each step takes, in seconds.

    The cool-down doubles from one ejection to the next, up to `longest_cool_down`, and is the first one again after the
    replica was well for `forgiving`. One that was out of reach for a `blip` only has not been started anew, so it has
    nothing to start slowly for. A full server is left alone for `pause`, doubling up to `longest_pause`.
    """

    cool_down: float = 2.0
    longest_cool_down: float = 60.0
    forgiving: float = 120.0
    slow_start: float = 30.0
    blip: float = 2.0
    pause: float = 0.5
    longest_pause: float = 2.0


DEFAULT_TIMES = BreakerTimes()

MOST_FAILURES = 3
"""So many different answers in a row that failed, without one between that went well, mean a sick replica."""
_AVAILABLE = frozenset({HealthState.HEALTHY, HealthState.SLOW_START})


@dataclass(slots=True)
class Health:
    """One replica's breaker. Every `now` is a monotonic time in seconds.

    unknown ──admit──▶ healthy ──eject──▶ ejected ──try_out──▶ half-open ──admit──▶ slow start ──time──▶ healthy
    A replica that could not be reached, and nothing worse, need not be tried out: a good probe admits it.
    """

    times: BreakerTimes = DEFAULT_TIMES
    why: str = ""
    needs_trial: bool = False
    _state: HealthState = HealthState.UNKNOWN
    _since: float = 0.0
    _was_healthy: bool = False
    _cool_down: float = 0.0
    _failed: set[int] = field(default_factory=set)
    _paused_until: float = -math.inf
    _pause: float = 0.0

    def state(self, now: float) -> HealthState:
        """Return the state; a slow start ends by itself."""
        if self._state is HealthState.SLOW_START and now - self._since >= self.times.slow_start:
            self._state, self._since = HealthState.HEALTHY, self._since + self.times.slow_start
        return self._state

    @property
    def is_available(self) -> bool:
        return self._state in _AVAILABLE

    def is_paused(self, now: float) -> bool:
        """Whether the server said a moment ago that it has no room."""
        return now < self._paused_until

    def permits(self, permits: int, now: float) -> int:
        """Return how many of its permits it may be given now: in a slow start one at first, and ever more."""
        if not self.is_available or self.is_paused(now):
            return 0
        if self.state(now) is HealthState.HEALTHY:
            return permits
        share = (now - self._since) / self.times.slow_start
        return min(permits, 1 + int((permits - 1) * share))

    def admit(self, now: float) -> None:
        """Note a good probe, or a good trial where one was needed."""
        if self.is_available or (self.needs_trial and self._state is not HealthState.HALF_OPEN):
            return
        is_first = self._state is HealthState.UNKNOWN
        is_blip = self._was_healthy and self._state is HealthState.EJECTED and now - self._since < self.times.blip
        self._state, self._since = HealthState.HEALTHY if is_first or is_blip else HealthState.SLOW_START, now
        self.why, self.needs_trial = "", False
        self._failed.clear()

    def succeed(self) -> None:
        """Note an answer that came to its proper end."""
        self._failed.clear()
        self._pause = 0.0

    def fail(self, answer: int) -> bool:
        """Note that an answer failed here, and say whether that makes too many.

        The same answer counts once, however often it is tried: a prompt that breaks every server ejects none.
        """
        self._failed.add(answer)
        return len(self._failed) >= MOST_FAILURES

    def pause(self, now: float) -> None:
        """Note that the server has no room: it is not sick, only full."""
        if not self.is_paused(now):
            self._pause = min(self.times.longest_pause, self._pause * 2 or self.times.pause)
            self._paused_until = now + self._pause

    def eject(self, why: str, now: float, *, needs_trial: bool) -> None:
        """Leave the replica out; where it must be tried out first, for longer than the last time."""
        if self._state is HealthState.EJECTED and (self.needs_trial or not needs_trial):
            return
        if self.state(now) is HealthState.HEALTHY and now - self._since >= self.times.forgiving:
            self._cool_down = 0.0
        if needs_trial:
            self._cool_down = min(self.times.longest_cool_down, self._cool_down * 2 or self.times.cool_down)
        self._was_healthy = self._state is HealthState.HEALTHY
        self._state, self._since = HealthState.EJECTED, now
        self.why, self.needs_trial = why, needs_trial or self.needs_trial

    def is_trial_due(self, now: float, *, is_needed: bool) -> bool:
        """Return whether to try a replica out; one that `is_needed`, for there is no other, only cools down briefly."""
        if not self.needs_trial or self._state is not HealthState.EJECTED:
            return False
        return now - self._since >= (min(self._cool_down, self.times.cool_down) if is_needed else self._cool_down)

    def try_out(self, now: float) -> None:
        """Note that a real generation is under way, on which it depends whether the replica is admitted."""
        self._state, self._since = HealthState.HALF_OPEN, now
