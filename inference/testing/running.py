"""A twin inside the test's own loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from inference.testing.control import Control
from inference.testing.facts import Facts
from inference.testing.faults import Fault, FaultKind, parse_fault
from inference.testing.gate import Gate
from inference.testing.generating import Generating
from inference.testing.ledger import Ledger, Record
from inference.testing.settings import TwinSettings
from inference.testing.state import TwinState


class Twin:
    """A running twin: its addresses, its faults and what it saw."""

    def __init__(self, state: TwinState) -> None:
        self._state = state
        self._runner: web.AppRunner | None = None
        self._control_runner: web.AppRunner | None = None
        self._site: web.SockSite | None = None
        self._reopening: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.control_port = 0

    @property
    def url(self) -> str:
        """Where models are asked."""
        return f"http://{self._state.settings.host}:{self.port}"

    @property
    def control_url(self) -> str:
        """Where `/_twin/` answers even while `url` refuses connections."""
        return f"http://{self._state.settings.host}:{self.control_port}"

    @property
    def settings(self) -> TwinSettings:
        """The settings as they are now."""
        return self._state.settings

    @property
    def records(self) -> tuple[Record, ...]:
        """Every request seen, oldest first."""
        return self._state.ledger.records

    @property
    def open_count(self) -> int:
        """Answers under way."""
        return len(self._state.ledger.open_records)

    def change(self, **changes: object) -> None:
        """Some settings anew; answers under way keep theirs."""
        self._state.settings = self._state.settings.changed(changes)

    def switch_on(self, kind: FaultKind | str, **fields: object) -> Fault:
        """A standing fault for whatever it matches, until it is switched off."""
        fault = parse_fault({"kind": kind, **fields})
        self._state.faults.switch_on(fault)
        return fault

    def switch_off(self, fault: Fault | None = None) -> None:
        """End one standing fault, or all."""
        self._state.faults.switch_off(fault.id if fault else None)

    def release(self) -> int:
        """Let every held answer go on."""
        return self._state.release()

    def reset(self) -> None:
        """Faults off, the past forgotten, held answers released."""
        self._state.reset()

    async def wait_for(self, predicate: Callable[[Ledger], bool], timeout: float = 5.0) -> None:
        """Return once the predicate holds; `TimeoutError` if it never does."""
        if not await self._state.ledger.wait_for(predicate, timeout_s=timeout):
            raise TimeoutError(f"never came true: {self._state.ledger.counts()}")

    async def refuse_connections(self, seconds: float | None = None) -> None:
        """Close the port; what is open stays open. After `seconds`, if given, it listens again."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        if seconds is not None:
            self._reopening = asyncio.get_running_loop().call_later(seconds, self._accept_soon)

    async def accept_connections(self) -> None:
        """Listen again on the same port."""
        if self._site is None:
            assert self._runner is not None
            self._site = web.SockSite(self._runner, _listening(self.settings.host, self.port))
            await self._site.start()

    async def start(self) -> None:
        """Bind both ports and serve."""
        listening = _listening(self.settings.host, self.settings.port)
        self.port = listening.getsockname()[1]
        self._runner = await _runner(self._state, self, with_models=True)
        self._site = web.SockSite(self._runner, listening)
        await self._site.start()
        control = _listening(self.settings.host, 0)
        self.control_port = control.getsockname()[1]
        self._control_runner = await _runner(self._state, self, with_models=False)
        await web.SockSite(self._control_runner, control).start()

    async def stop(self) -> None:
        """Close everything; the answers under way end here."""
        self._state.is_stopping = True
        self._state.clock.stop()
        if self._reopening is not None:
            self._reopening.cancel()
        for runner in (self._runner, self._control_runner):
            if runner is not None:
                await runner.cleanup()

    def _accept_soon(self) -> None:
        task = asyncio.get_running_loop().create_task(self.accept_connections())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def running_twin(settings: TwinSettings | None = None) -> AsyncIterator[Twin]:
    """A twin for as long as the block lasts."""
    twin = Twin(TwinState(settings or TwinSettings()))
    await twin.start()
    try:
        yield twin
    finally:
        await twin.stop()


async def _runner(state: TwinState, twin: Twin, *, with_models: bool) -> web.AppRunner:
    app = web.Application(client_max_size=state.settings.payload_limit)
    Gate(state).add_to(app)
    Control(state, refuse=twin.refuse_connections, accept=twin.accept_connections).add_to(app)
    if with_models:
        Facts(state).add_to(app)
        Generating(state).add_to(app)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    return runner


def _listening(host: str, port: int) -> socket.socket:
    listening = socket.create_server((host, port), backlog=4096)
    listening.setblocking(False)
    return listening
