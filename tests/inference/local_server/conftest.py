"""One loaded model for all these tests, served by real HTTP servers in a thread of their own."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

import pytest
from aiohttp import web

from inference.local_server.app import ServerSettings, build_app
from inference.local_server.engine import EngineSettings, RunningEngine
from inference.local_server.fetch import weights_path
from inference.local_server.local_models import SMALL
from tests.inference.conformance import raw_http

WINDOW_TOKENS = 2048


@dataclass(frozen=True)
class ServedModel:
    """A server's address, and what its engine says of itself behind its back."""

    url: str
    running: RunningEngine

    def slots(self) -> list[dict]:
        request = Request(self.running.url + "/slots", headers={"authorization": f"Bearer {self.running.api_key}"})
        with urlopen(request) as response:
            return json.load(response)

    def is_idle(self) -> bool:
        return not any(slot["is_processing"] for slot in self.slots())

    async def gauge(self, name: str) -> float:
        page = (await raw_http.get(self.url, "/metrics")).text
        return next((float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} ")), 0.0)

    async def until(self, condition: Callable[[], bool], seconds: float) -> float:
        """Waits until `condition` holds and returns after how many seconds it did."""
        began = time.monotonic()
        while not await asyncio.to_thread(condition):
            assert time.monotonic() - began < seconds, f"not within {seconds} s"
        return time.monotonic() - began


@pytest.fixture(autouse=True)
def _empty_redis():
    """The model server knows no store, so these tests need none."""


@pytest.fixture(scope="session")
def running() -> RunningEngine:
    # One thread: several that wait for each other crawl when other tests run beside them.
    return RunningEngine(EngineSettings(weights_path(SMALL), threads=1, parallel=2, window_tokens=WINDOW_TOKENS))


@pytest.fixture(scope="session")
def server(running) -> Iterator[ServedModel]:
    with serve(running) as served:
        yield served


@contextmanager
def serve(running: RunningEngine, **changes) -> Iterator[ServedModel]:
    """A server of its own over the shared engine."""
    settings = {"parallel": 2, "window_tokens": WINDOW_TOKENS, "max_concurrent_requests": 8} | changes
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="local model server")
    thread.start()
    app = build_app(running, SMALL, ServerSettings(**settings))
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    try:
        url = asyncio.run_coroutine_threadsafe(_start(runner), loop).result(timeout=30)
        yield ServedModel(url, running)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(runner: web.AppRunner) -> str:
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    return f"http://{host}:{port}"
