"""Runs the web server, on uvloop and paced: `python -m chatsite.web` takes daphne's arguments.

Daphne makes its event loop when it is imported, so the policy comes first.
"""

import asyncio

import uvloop

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

from daphne.cli import CommandLineInterface  # noqa: E402

from chatsite.pacing import PacedServer  # noqa: E402


class WebServer(CommandLineInterface):  # type: ignore[misc]  # daphne is untyped
    """Daphne's command line, with our server behind it."""

    server_class = PacedServer


if __name__ == "__main__":
    WebServer.entrypoint()
