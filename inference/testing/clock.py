"""The token clock: one timer for all streams, in buckets of a millisecond."""

import asyncio
from heapq import heappop, heappush
from math import ceil
from typing import Protocol

_ALARMS_PER_TURN = 64
"""So many streams are served before the loop may look at its sockets again: a disconnect must not wait for 1,000."""


class Alarm(Protocol):
    """What the clock wakes. `due` is its exact time in seconds; buckets only round the moment, so nothing drifts."""

    due: float

    def ring(self) -> None:
        """Do what was due."""


class Clock:
    """Rings each alarm at its time. One loop timer, however many alarms there are."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buckets: dict[int, list[Alarm]] = {}
        self._bucket_times: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_bucket = 0

    def time(self) -> float:
        """Seconds on the loop's clock."""
        return self._loop.time()

    def set(self, alarm: Alarm, due: float) -> None:
        """Ring `alarm` at `due`."""
        alarm.due = due
        bucket = ceil(due * 1000)
        waiting = self._buckets.get(bucket)
        if waiting is not None:
            waiting.append(alarm)
            return
        self._buckets[bucket] = [alarm]
        heappush(self._bucket_times, bucket)
        if self._timer is None or bucket < self._timer_bucket:
            self._wind()

    def stop(self) -> None:
        """Ring nothing of what is set."""
        self._buckets.clear()
        self._bucket_times.clear()
        self._wind()

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._bucket_times:
            self._timer_bucket = self._bucket_times[0]
            self._timer = self._loop.call_at(self._timer_bucket / 1000, self._ring_due)

    def _ring_due(self) -> None:
        left = _ALARMS_PER_TURN
        now = self._loop.time() * 1000 + 0.001
        while left > 0 and self._bucket_times and self._bucket_times[0] <= now:
            bucket = self._bucket_times[0]
            waiting = self._buckets[bucket]
            turn, rest = waiting[:left], waiting[left:]
            left -= len(turn)
            if rest:
                self._buckets[bucket] = rest
            else:
                heappop(self._bucket_times)
                del self._buckets[bucket]
            for alarm in turn:
                if ceil(alarm.due * 1000) == bucket:  # else it was set anew since
                    alarm.ring()
        self._wind()
