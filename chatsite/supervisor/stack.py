"""The whole stack: brought up in order, watched, stopped in order."""

import asyncio
import signal
import time
from collections.abc import Coroutine

from chatsite.supervisor.component import Component
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.plan import Plan
from chatsite.supervisor.process import POLL_SECONDS, Supervised
from chatsite.supervisor.terminal import Terminal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stack:
    """Runs a plan until it is asked to stop, twice if it is to stop at once."""

    def __init__(self, plan: Plan, terminal: Terminal, guard: Guard) -> None:
        self._plan = plan
        self._terminal = terminal
        self._guard = guard
        self._stop_asked = asyncio.Event()
        self._stores: list[Supervised] = []
        self._others: list[Supervised] = []

    async def run(self) -> None:
        """Bring everything up, keep it running, stop it; raise a group of `StartError` if it does not come up."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._ask_to_stop)
        async with asyncio.TaskGroup() as keepers:
            try:
                await self._unless_asked_to_stop(self._bring_up(keepers))
                await self._stop_asked.wait()
            finally:
                await self._stop()

    def _ask_to_stop(self) -> None:
        if self._stop_asked.is_set():
            for supervised in [*self._others, *self._stores]:
                supervised.kill()
            return
        self._terminal.say("stopping; once more to stop at once")
        self._stop_asked.set()

    async def _bring_up(self, keepers: asyncio.TaskGroup) -> None:
        models = self._start(self._others, self._plan.models(), keepers)
        stores = self._start(self._stores, self._plan.stores(), keepers)
        async with asyncio.TaskGroup() as set_up:
            set_up.create_task(self._set_up_database(stores))
            set_up.create_task(self._run_to_end(self._plan.static_collection()))
        await _all_ready(self._start(self._others, self._plan.servers(), keepers))
        await self._first_model(models)
        await self._run_to_end(self._plan.first_account())
        self._say_where(models)

    def _start(
        self, among: list[Supervised], components: list[Component], keepers: asyncio.TaskGroup
    ) -> list[Supervised]:
        started = [Supervised(component, self._terminal, self._guard) for component in components]
        among.extend(started)
        for supervised in started:
            self._terminal.say(f"{supervised.component.name} is starting")
            keepers.create_task(supervised.keep_running(), name=supervised.component.name)
        return started

    async def _set_up_database(self, stores: list[Supervised]) -> None:
        await _all_ready(stores)
        await asyncio.to_thread(self._plan.create_database)
        self._plan.tell_addresses()
        await self._run_to_end(self._plan.migration())
        await self._run_to_end(self._plan.fleet_seeding())

    async def _run_to_end(self, component: Component) -> None:
        await Supervised(component, self._terminal, self._guard).run_to_end()

    async def _first_model(self, models: list[Supervised]) -> None:
        """Wait for one model to answer; the first start fetches it. Where none can be had, go on without."""
        while models and not any(model.ready.is_set() for model in models):
            if all(model.failures for model in models):
                self._terminal.say("no model runs yet; messages wait until one does")
                return
            await asyncio.sleep(POLL_SECONDS)

    def _say_where(self, models: list[Supervised]) -> None:
        for model in models:
            if not model.ready.is_set():
                self._terminal.say(f"the model {model.component.name} is still on its way")
        self._terminal.say(f"ready: open {self._plan.address}")

    async def _unless_asked_to_stop(self, work: Coroutine[None, None, None]) -> None:
        tasks = {asyncio.create_task(work), asyncio.create_task(self._stop_asked.wait())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _stop(self) -> None:
        began = time.monotonic()
        await asyncio.gather(*(supervised.stop() for supervised in self._others))
        await asyncio.gather(*(supervised.stop() for supervised in self._stores))
        self._plan.forget_addresses()
        self._terminal.say(f"stopped after {time.monotonic() - began:.1f} s")


async def _all_ready(started: list[Supervised]) -> None:
    async with asyncio.TaskGroup() as waits:
        for supervised in started:
            waits.create_task(supervised.wait_until_ready())
