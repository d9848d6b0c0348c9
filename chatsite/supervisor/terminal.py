"""What the person at the terminal reads."""

import asyncio
import contextlib
import re
import sys
from typing import TextIO

WIDTH = 10
MAX_LINE_BYTES = 65_536
_COLOURS = {"database": 34, "redis": 31, "web": 32, "worker": 33, "celery": 36, "bulk": 36, "beat": 36}
_MODEL_COLOUR, _SUPERVISOR_COLOUR = 35, 1


class Terminal:
    """Prints lines, each with the name of who says it."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._coloured = stream.isatty()

    def say(self, text: str, *, name: str = "chat") -> None:
        """Print a line; where nobody listens any more (a closed terminal), do nothing."""
        prefix = f"{name:>{WIDTH}} | "
        if self._coloured:
            colour = _COLOURS.get(name, _SUPERVISOR_COLOUR if name == "chat" else _MODEL_COLOUR)
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{prefix}{text}\n")
            self._stream.flush()

    async def relay(self, name: str, output: asyncio.StreamReader) -> None:
        """Print what a program writes, line by line, until it ends. A progress bar's returns count as line ends."""
        rest = b""
        while chunk := await output.read(MAX_LINE_BYTES):
            *lines, rest = re.split(rb"[\r\n]+", rest + chunk)
            if len(rest) > MAX_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            self._say_all(name, lines)
        self._say_all(name, [rest])

    def _say_all(self, name: str, lines: list[bytes]) -> None:
        for line in lines:
            if text := line.decode(errors="replace").rstrip():
                self.say(text, name=name)
