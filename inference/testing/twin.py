"""`python -m inference.testing.twin`: a twin as a process of its own."""

import argparse
import asyncio
import json
import os
import signal
import sys
from dataclasses import fields
from typing import get_args

import uvloop

from inference.testing.running import running_twin
from inference.testing.settings import Dialect, TwinSettings

_TYPES = {"port": int, "answer_tokens": int, "permits": int, "batch_size": int, "max_input_tokens": int}
_TYPES |= {"max_total_tokens": int, "payload_limit": int}


def main() -> None:
    """Serve until SIGTERM or SIGINT; one line of JSON says where."""
    arguments = vars(_parser().parse_args())
    ends_with_stdin = arguments.pop("until_stdin_closes")
    uvloop.run(_serve(TwinSettings(**arguments), ends_with_stdin=ends_with_stdin))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference.testing.twin", description=__doc__)
    defaults = TwinSettings()
    for field in fields(TwinSettings):
        default = getattr(defaults, field.name)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            default=default,
            type=_TYPES.get(field.name, float if isinstance(default, float) else str),
            choices=get_args(Dialect.__value__) if field.name == "dialect" else None,
        )
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the process that started this one")
    return parser


async def _serve(settings: TwinSettings, *, ends_with_stdin: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if ends_with_stdin:
        loop.add_reader(sys.stdin.fileno(), stopped.set)
    async with running_twin(settings) as twin:
        print(json.dumps({"port": twin.port, "pid": os.getpid(), "control_port": twin.control_port}), flush=True)
        await stopped.wait()


if __name__ == "__main__":
    main()
