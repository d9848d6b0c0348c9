"""Runs the web server on uvloop: `python -m chatsite.web` takes daphne's arguments.

Daphne makes its event loop when it is imported, so the policy comes first.
"""

import asyncio

import uvloop

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

from daphne.cli import CommandLineInterface  # noqa: E402

if __name__ == "__main__":
    CommandLineInterface.entrypoint()
