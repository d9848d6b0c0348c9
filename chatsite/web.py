"""Runs the web server, uvicorn on uvloop: `python -m chatsite.web chatsite.asgi:application`."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from socket import socket

import uvicorn
import uvloop
from uvicorn.server import HANDLED_SIGNALS

from chatsite.web_protocols import HttpProtocol, WebSocketProtocol
from foundation import event_loop, long_lived

PING_SECONDS = 20.0
"""Pings keep a quiet WebSocket open through proxies."""
PONG_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 75
"""Longer than proxies keep a connection: who closes it first must not be the one to whom a request is on its way."""
MOST_SOCKET_MESSAGE_BYTES = 65_536
GRACE_SECONDS = 3.5
"""How long requests that have begun may go on once the process is told to stop."""
LAST_SECONDS = 1.0
"""How long they then have to notice that they were cut off."""


class WebServer(uvicorn.Server):
    """Uvicorn's server, which ends in order and in time."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a signal end the server, and no more: uvicorn would raise it again afterwards."""
        loop = asyncio.get_running_loop()
        for number in HANDLED_SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Take no more requests, end the streams, let the rest finish; cut off what has not."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._finish_tasks()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._finish_tasks()

    async def _finish_tasks(self) -> None:
        while self.server_state.tasks:
            await asyncio.wait(list(self.server_state.tasks))


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal comes."""
    options = _options(arguments)
    config = uvicorn.Config(
        options.application,
        host=options.host,
        port=options.port,
        uds=options.unix_socket,
        loop="none",
        http=HttpProtocol,
        ws=WebSocketProtocol,
        ws_max_size=MOST_SOCKET_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PONG_SECONDS,
        ws_per_message_deflate=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        lifespan="off",
        log_config=None,
        access_log=False,
        # The application reads what a trusted proxy forwards, where the settings say that there is one.
        proxy_headers=False,
        server_header=False,
    )
    config.load()  # while no event loop runs: what is imported may use the database
    long_lived.prepare()
    uvloop.run(_serve(config))


async def _serve(config: uvicorn.Config) -> None:
    async with event_loop.watched("web"):
        await WebServer(config).serve()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chatsite.web", description=__doc__)
    parser.add_argument("-b", "--bind", dest="host", default="127.0.0.1", metavar="ADDRESS")
    parser.add_argument("-p", "--port", type=int, default=8000)
    parser.add_argument("-u", "--unix-socket", metavar="PATH", help="listen there instead")
    parser.add_argument("application", metavar="MODULE:NAME", help="such as chatsite.asgi:application")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
