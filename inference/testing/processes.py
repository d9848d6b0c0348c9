"""A twin as a child process, for code without a loop of its own: it can be killed and come back on its port."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from inference.testing.settings import TwinSettings

_END_TIMEOUT_S = 20.0


class TwinProcess:
    """One child at a time; a restarted one has the same port and knows nothing of the past."""

    def __init__(self, settings: TwinSettings) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._control_port = 0

    @property
    def port(self) -> int:
        """Known once it has started."""
        return self._settings.port

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self._child is not None
        return self._child.pid

    @property
    def url(self) -> str:
        """Where models are asked."""
        return f"http://{self._settings.host}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it serves."""
        command = [sys.executable, "-m", "inference.testing.twin", "--until-stdin-closes", *_arguments(self._settings)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self._child = child
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"the twin ended with {child.wait()} instead of serving")
        ready = json.loads(line)
        self._settings = replace(self._settings, port=ready["port"])
        self._control_port = ready["control_port"]

    def kill(self) -> None:
        """As `kill -9`: every connection breaks."""
        if self._child is not None:
            self._child.kill()
            self._reap()

    def stop(self) -> None:
        """As SIGTERM."""
        if self._child is not None:
            self._child.terminate()
            self._reap()

    def switch_on(self, kind: str, **fields: object) -> int:
        """A standing fault for whatever it matches, until it is switched off."""
        fault_id: int = self._ask("POST", "faults", {"kind": kind, **fields})["id"]
        return fault_id

    def switch_off(self, fault_id: int | None = None) -> None:
        """End one standing fault, or all."""
        self._ask("DELETE", "faults" if fault_id is None else f"faults?id={fault_id}")

    def change(self, **changes: object) -> None:
        """Some settings anew."""
        self._ask("POST", "settings", changes)

    def report(self) -> dict[str, Any]:
        """Everything it has seen since the last reset."""
        return self._ask("GET", "report")

    def request(self, number: int) -> dict[str, Any]:
        """One request with its body and headers."""
        return self._ask("GET", f"requests/{number}")

    def wait(self, timeout: float = 5.0, **conditions: int) -> dict[str, Any]:
        """The report once all conditions hold; `TimeoutError` if they never do."""
        try:
            return self._ask("GET", f"wait?{urlencode({'timeout': timeout, **conditions})}", timeout=timeout + 5)
        except HTTPError as error:
            raise TimeoutError(f"{conditions} never came true: {error.read().decode()}") from error

    def release(self) -> None:
        """Let every held answer go on."""
        self._ask("POST", "release")

    def reset(self) -> None:
        """Faults off, the past forgotten, held answers released."""
        self._ask("POST", "reset")

    def refuse_connections(self, seconds: float | None = None) -> None:
        """Close the port; what is open stays open."""
        self._ask("POST", "refuse", {"seconds": seconds})

    def accept_connections(self) -> None:
        """Listen again."""
        self._ask("POST", "accept")

    def _ask(self, method: str, path: str, body: object = None, *, timeout: float = 10.0) -> dict[str, Any]:
        raw = None if body is None else json.dumps(body).encode()
        url = f"http://{self._settings.host}:{self._control_port}/_twin/{path}"
        request = Request(url, raw, {"content-type": "application/json"}, method=method)
        with urlopen(request, timeout=timeout) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
        return answer

    def _reap(self) -> None:
        assert self._child is not None
        with self._child:
            self._child.wait(_END_TIMEOUT_S)
        self._child = None


@contextmanager
def twin_process(settings: TwinSettings | None = None) -> Iterator[TwinProcess]:
    """A child for as long as the block lasts."""
    twin = TwinProcess(settings or TwinSettings())
    twin.start()
    try:
        yield twin
    finally:
        twin.kill()


def _arguments(settings: TwinSettings) -> list[str]:
    values = ((field.name, getattr(settings, field.name)) for field in fields(settings))
    return [f"--{name.replace('_', '-')}={value}" for name, value in values if value is not None]
