"""Notices replicas that are connected and say that they are well, but write nothing, and takes their answers away."""

import asyncio
from dataclasses import dataclass, field

import structlog

from inference.fleet import Fleet
from inference.probing import why_not_generating
from inference.replica_state import ReplicaState

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Watchdog:
    """Looks at every request under way. Where a model has one replica only, it is left to its long time-outs."""

    fleet: Fleet
    _questioned: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Look until cancelled."""
        loop, pause = asyncio.get_running_loop(), self.fleet.pace.look_seconds
        async with asyncio.TaskGroup() as questions:
            looked_at = loop.time()
            while True:
                await asyncio.sleep(pause)
                # A loop that stood still has heard nothing, whatever the servers said.
                is_late = loop.time() - looked_at > 4 * pause + 1
                looked_at = loop.time()
                if not is_late:
                    self._look(looked_at, questions)

    def _look(self, now: float, questions: asyncio.TaskGroup) -> None:
        pace = self.fleet.pace
        for state in list(self.fleet.states.values()):
            if not state.watches or not self.fleet.has_alternative(state):
                continue
            is_silent = state.health.is_available and state.silent_seconds(now) >= pace.silence_seconds
            if is_silent and state.replica.url not in self._questioned:
                self._questioned.add(state.replica.url)
                questions.create_task(self._question(state), name=f"question {state.replica.url}")
            self._abandon_stalled(state, now)

    def _abandon_stalled(self, state: ReplicaState, now: float) -> None:
        pace = self.fleet.pace
        for watch in list(state.watches):
            limit = pace.stall_seconds if watch.has_begun else pace.first_token_stall_seconds
            if not watch.is_patient and watch.silent_seconds(now) >= limit:
                watch.abandon()

    async def _question(self, state: ReplicaState) -> None:
        """Ask a silent replica for one token; without it, leave it out and move what it should have written."""
        try:
            why = await why_not_generating(state, self.fleet.pace.silence_seconds)
        finally:
            self._questioned.discard(state.replica.url)
        now = asyncio.get_running_loop().time()
        if not why:
            state.note_progress()
        elif state.silent_seconds(now) >= self.fleet.pace.silence_seconds and self.fleet.has_alternative(state):
            log.warning("replica_wedged", replica=state.replica.url, in_flight=state.in_flight)
            self.fleet.eject(state, f"It is wedged. {why}", needs_trial=True)
            for watch in list(state.watches):
                watch.abandon()
