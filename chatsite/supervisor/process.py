"""Running programs: started on a leash, watched, started again, stopped with all that they started."""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatsite.supervisor.component import Component, leashed
from chatsite.supervisor.errors import StartError
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.terminal import Terminal

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 15.0
STEADY_SECONDS = 30.0
"""After running this long, the next failure counts as the first."""
POLL_SECONDS = 0.2
MOST_FAILURES = 3
"""While the stack comes up; later a component is started again for ever."""


class Supervised:
    """One component, kept running. `ready` is set while it runs and answers; `failures` counts its ends in a row."""

    def __init__(self, component: Component, terminal: Terminal, guard: Guard) -> None:
        self.component = component
        self.ready = asyncio.Event()
        self.failures = 0
        self._terminal = terminal
        self._guard = guard
        self._stopping = asyncio.Event()
        self._running = asyncio.Event()
        self._process: Process | None = None

    async def keep_running(self) -> None:
        """Run the program again and again, with growing pauses where it fails at once, until `stop` is called."""
        while not self._stopping.is_set():
            began = time.monotonic()
            watching = asyncio.create_task(self._watch_readiness())
            try:
                ending = _ending(await self._run_once())
            except (OSError, StartError) as error:
                ending = f"cannot start: {error}"
            finally:
                watching.cancel()
                self.ready.clear()
            if self._stopping.is_set():
                return
            self.failures = 1 if time.monotonic() - began > STEADY_SECONDS else self.failures + 1
            pause_seconds = min(FIRST_PAUSE_SECONDS * 2 ** (self.failures - 1), LONGEST_PAUSE_SECONDS)
            self._terminal.say(f"{self.component.name} {ending}; next start in {pause_seconds:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_seconds)

    async def wait_until_ready(self) -> None:
        """Wait until it answers; raise `StartError` once it has failed several times in a row."""
        while not self.ready.is_set():
            if self.failures >= MOST_FAILURES:
                raise StartError(f"{self.component.name} does not start; its last lines above say why.")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ready.wait(), POLL_SECONDS)

    async def run_to_end(self) -> None:
        """Run a program that does one thing; raise `StartError` if it fails."""
        code = await self._run_once()
        if code != 0 and not self._stopping.is_set():
            raise StartError(f"{self.component.name} {_ending(code)}; its last lines above say why.")

    async def stop(self) -> None:
        """Ask the program to end, and end it after its grace."""
        self._stopping.set()
        if self._process is None:
            return
        self._signal(self.component.stop_signal)
        try:
            await asyncio.wait_for(self._process.wait(), self.component.grace_seconds)
        except TimeoutError:
            self._terminal.say(f"{self.component.name} does not stop by itself; ending it")
            self.kill()

    def kill(self) -> None:
        """End the program now."""
        self._stopping.set()
        self._signal(self.component.kill_signal)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _run_once(self) -> int:
        if self.component.prepare is not None:
            await asyncio.to_thread(self.component.prepare)
        if self._stopping.is_set():
            return 0
        async with self._started() as process:
            return await process.wait()

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[Process]:
        component = self.component
        async with _output(component.name, self._terminal) as write_end:
            process = await asyncio.create_subprocess_exec(
                *leashed(
                    component.command,
                    stop_signal=component.stop_signal,
                    niceness=component.niceness,
                    privileges=component.privileges,
                ),
                stdin=DEVNULL,
                stdout=write_end,
                stderr=STDOUT,
                env={**os.environ, **component.environment},
                start_new_session=True,  # the terminal's Ctrl-C is the supervisor's to pass on, in order
            )
            self._process = process
            self._running.set()
            self._guard.begun(process.pid, component.stop_signal)
            if self._stopping.is_set():  # told while it was being started
                self.kill()
            try:
                yield process
            finally:
                await self._end_group(process)

    async def _end_group(self, process: Process) -> None:
        if process.returncode is None:
            process.kill()
            await process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        self._guard.ended(process.pid)
        if self.component.forget is not None:
            self.component.forget(process.pid)
        self._process = None
        self._running.clear()

    async def _watch_readiness(self) -> None:
        began = time.monotonic()
        await self._running.wait()
        while not await self.component.is_ready():  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        self.ready.set()
        self._terminal.say(f"{self.component.name} is ready after {time.monotonic() - began:.1f} s")


@asynccontextmanager
async def _output(name: str, terminal: Terminal) -> AsyncIterator[int]:
    """Give the end of a pipe to write to, whose lines go to the terminal.

    A pipe of our own: asyncio's `wait()` would otherwise wait for every grandchild that holds the output open.
    """
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    relaying = asyncio.create_task(terminal.relay(name, reader))
    try:
        yield write_end
    finally:
        os.close(write_end)
        await asyncio.wait([relaying], timeout=1)
        transport.close()
        relaying.cancel()


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"
