"""Asks replicas how they are, again and again: health, identity and load, and after a failure a real generation."""

import asyncio
import math
import random
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import dataclass

from inference.fleet import Fleet
from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.metrics import PROBES, replica_label
from inference.replica_state import ReplicaState
from inference.tgi.errors import ModelServerError

_MOST_AT_ONCE = 32
_MOST_PER_SECOND = 50
"""A large fleet is probed more seldom: whatever has requests there is noticed by them anyway."""
_LOOK_SECONDS = 0.05
_BAD_PROBES_UNTIL_OUT = 2
"""A server may answer one probe late because it reads a long prompt."""
_TRIAL = ChatMessage("user", "Hi")


@dataclass(slots=True)
class Prober:
    """Keeps what a fleet knows of its replicas up to date. At most 32 are asked at once, and 50 in a second."""

    fleet: Fleet

    async def run(self) -> None:
        """Probe until cancelled."""
        places = asyncio.Semaphore(_MOST_AT_ONCE)
        async with asyncio.TaskGroup() as probes:
            while True:
                now = asyncio.get_running_loop().time()
                for state in self.fleet.states.values():
                    if now >= state.next_probe_at and not state.is_being_probed:
                        state.is_being_probed = True
                        probes.create_task(self._probe(state, places), name=f"probe {state.replica.url}")
                await asyncio.sleep(_LOOK_SECONDS)

    async def _probe(self, state: ReplicaState, places: asyncio.Semaphore) -> None:
        pace, loop = self.fleet.pace, asyncio.get_running_loop()
        # Whatever hastens the next probe while this one runs is heard.
        state.next_probe_at = math.inf
        try:
            async with places:
                await self._check(state)
        finally:
            wait = pace.probe_seconds if state.health.is_available and not state.bad_probes else pace.probe_seconds / 4
            wait = max(wait, len(self.fleet.states) / _MOST_PER_SECOND)
            state.next_probe_at = min(state.next_probe_at, loop.time() + wait * random.uniform(0.9, 1.1))  # noqa: S311
            state.is_being_probed = False

    async def _check(self, state: ReplicaState) -> None:
        began = asyncio.get_running_loop().time()
        is_well = await _answered(state.server.is_healthy(), self.fleet.pace.probe_limit_seconds)
        PROBES.labels(replica_label(state.replica.url), "good" if is_well else "bad").inc()
        if not is_well:
            self._note_bad(state, began)
            return
        state.bad_probes = 0
        await self._identify(state)
        state.load = await _answered(state.server.load(), self.fleet.pace.probe_limit_seconds)
        self.fleet.note_load(state)
        now = asyncio.get_running_loop().time()
        if state.health.is_trial_due(now, is_needed=not self.fleet.has_alternative(state)):
            await self._try_out(state)
        else:
            self.fleet.admit(state)

    def _note_bad(self, state: ReplicaState, began: float) -> None:
        if state.watches and state.progressed_at() >= began:
            return  # it writes answers, and is only too busy to say that it is well
        state.bad_probes += 1
        if state.bad_probes >= _BAD_PROBES_UNTIL_OUT or not state.health.is_available:
            self.fleet.eject(state, "It does not answer /health.", needs_trial=False)

    async def _identify(self, state: ReplicaState) -> None:
        pace, now = self.fleet.pace, asyncio.get_running_loop().time()
        is_known = state.info is not None and state.is_available
        # What is pinned is looked at each time: behind one address the server may change without a moment's absence.
        if is_known and not state.version.is_pinned and now - state.identified_at < pace.identity_seconds:
            return
        info = await _answered(state.server.info(state.version.model_id), pace.probe_limit_seconds)
        if info is not None:
            state.identified_at = now
        elif not is_known:
            state.info = None
        self.fleet.identify(state, info or state.info)

    async def _try_out(self, state: ReplicaState) -> None:
        state.health.try_out(asyncio.get_running_loop().time())
        why = await why_not_generating(state, self.fleet.pace.silence_seconds)
        if why:
            self.fleet.eject(state, why, needs_trial=True)
        else:
            self.fleet.admit(state)


async def why_not_generating(state: ReplicaState, limit_seconds: float) -> str:
    """Ask for one token, and return why none came in time; empty where one did."""
    request = ChatRequest((_TRIAL,), SamplingOptions(1), "trial", model=state.model_id)
    try:
        async with asyncio.timeout(limit_seconds), aclosing(state.server.stream_chat(request)) as events:
            await anext(events)
    except TimeoutError:
        return f"It generates nothing: no token in {limit_seconds:g} s."
    except ModelServerError as error:
        return f"It fails to generate: {error}."
    return ""


async def _answered[T](question: Awaitable[T], limit_seconds: float) -> T | None:
    """Return a server's answer; `None` where none comes in time, or an error."""
    try:
        async with asyncio.timeout(limit_seconds):
            return await question
    except (ModelServerError, TimeoutError):
        return None
