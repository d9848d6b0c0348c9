"""Plays a stream's script against the token clock."""

import asyncio
from enum import StrEnum

from inference.testing.clock import Clock
from inference.testing.ledger import Record
from inference.testing.script import Script, Step, Then
from inference.testing.wire import Wire

KEEP_ALIVE = b":\n\n"
_BACKED_UP_RETRY_S = 0.01
_STEPS_PER_TURN = 64


class Ending(StrEnum):
    """How the server's side of a stream came to its end."""

    COMPLETE = "complete"
    CUT = "cut"
    ABANDONED = "abandoned"


class Player:
    """Sends a script's steps at their times, with a comment whenever the stream was silent for too long."""

    __slots__ = (
        "_clock",
        "_holds",
        "_is_held",
        "_keep_alive_s",
        "_pause_left",
        "_record",
        "_script",
        "_wire",
        "done",
        "due",
    )

    def __init__(self, clock: Clock, wire: Wire, record: Record, holds: "set[Player]", *, keep_alive_ms: float) -> None:
        self._clock = clock
        self._wire = wire
        self._record = record
        self._holds = holds
        self._keep_alive_s = keep_alive_ms / 1000
        self._pause_left = 0.0
        self._is_held = False
        self._script: Script = iter(())
        self.due = 0.0
        self.done: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def wait(self) -> None:
        """Stay silent, but for keep-alives, until there is a script."""
        self._is_held = True
        self._keep_quiet(self._clock.time())

    def play(self, script: Script) -> None:
        """Begin the script now."""
        self._script = script
        self._is_held = False
        self._pause_left = 0.0
        self._clock.set(self, self._clock.time())

    def release(self) -> None:
        """Go on with what was held."""
        self._unhold()
        self.play(self._script)

    def end(self, ending: Ending) -> None:
        """Send nothing more."""
        self._unhold()
        self._script = iter(())
        if not self.done.done():
            self.done.set_result(ending)

    def ring(self) -> None:
        """Send what is due."""
        if self.done.done():
            return
        if self._wire.is_backed_up:
            self._clock.set(self, self._clock.time() + _BACKED_UP_RETRY_S)
        elif self._pause_left > 0 or self._is_held:
            self._wire.send(KEEP_ALIVE)
            self._keep_quiet(self.due)
        else:
            self._send_due()

    def _send_due(self) -> None:
        for _ in range(_STEPS_PER_TURN):
            step = next(self._script, None)
            if step is None:
                self.end(Ending.COMPLETE)
                return
            if step.payload:
                self._wire.send(step.payload)
                self._record.sent(step.token_count)
            if step.then is not Then.GO_ON:
                self._turn(step)
                return
            if step.pause_ms:
                self._pause(self.due, step.pause_ms / 1000)
                return
        self._clock.set(self, self._clock.time())

    def _turn(self, step: Step) -> None:
        if step.then is Then.SILENCE:
            self._clock.set(self, self.due + step.pause_ms / 1000)
        elif step.then in (Then.FIN, Then.RESET):
            self._record.close("server", "cut")
            self.end(Ending.CUT)
            (self._wire.close if step.then is Then.FIN else self._wire.reset)()
        else:
            self._hold(keeps_alive=step.then is Then.HOLD)

    def _hold(self, *, keeps_alive: bool) -> None:
        self._is_held = True
        self._holds.add(self)
        self._record.hold(is_held=True)
        if keeps_alive:
            self._keep_quiet(self._clock.time())

    def _pause(self, now: float, seconds: float) -> None:
        wait = min(seconds, self._keep_alive_s)
        self._pause_left = seconds - wait
        self._clock.set(self, now + wait)

    def _keep_quiet(self, now: float) -> None:
        if self._pause_left > 0:
            self._pause(now, self._pause_left)
        else:
            self._clock.set(self, now + self._keep_alive_s)

    def _unhold(self) -> None:
        if self in self._holds:
            self._holds.discard(self)
            self._record.hold(is_held=False)
