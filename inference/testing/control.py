"""The twin's own routes under `/_twin/`: faults, settings, reports."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from inference.testing.faults import InvalidFaultError, parse_fault
from inference.testing.ledger import Ledger
from inference.testing.refusals import json_response
from inference.testing.state import TwinState

type Refuse = Callable[[float | None], Awaitable[None]]


class Control:
    """What tests tell a running twin and ask of it. `refuse` closes the port, for so many seconds if told so."""

    def __init__(self, state: TwinState, *, refuse: Refuse, accept: Callable[[], Awaitable[None]]) -> None:
        self._state = state
        self._refuse = refuse
        self._accept = accept

    def add_to(self, app: web.Application) -> None:
        """All under the one prefix."""
        router = app.router
        router.add_post("/_twin/faults", self.switch_on)
        router.add_delete("/_twin/faults", self.switch_off)
        router.add_post("/_twin/settings", self.change_settings)
        router.add_get("/_twin/report", self.report)
        router.add_get("/_twin/requests/{number}", self.request)
        router.add_get("/_twin/wait", self.wait)
        router.add_post("/_twin/release", self.release)
        router.add_post("/_twin/reset", self.reset)
        router.add_post("/_twin/refuse", self.refuse)
        router.add_post("/_twin/accept", self.accept)

    async def switch_on(self, request: web.Request) -> web.Response:
        """A standing fault; the answer names its id."""
        try:
            fault = parse_fault(await request.json())
        except InvalidFaultError as error:
            return json_response({"error": str(error)}, status=422)
        return json_response({"id": self._state.faults.switch_on(fault)})

    async def switch_off(self, request: web.Request) -> web.Response:
        """One standing fault by `?id=`, else all."""
        wanted = request.query.get("id")
        self._state.faults.switch_off(int(wanted) if wanted else None)
        return json_response({})

    async def change_settings(self, request: web.Request) -> web.Response:
        """Some settings anew; answers under way keep theirs."""
        try:
            self._state.settings = self._state.settings.changed(await request.json())
        except ValueError as error:
            return json_response({"error": str(error)}, status=422)
        return json_response(asdict(self._state.settings))

    async def report(self, _request: web.Request) -> web.Response:
        """Everything that was seen since the last reset."""
        return json_response(self._report())

    async def request(self, request: web.Request) -> web.Response:
        """One request with its body and headers, as they came."""
        number = int(request.match_info["number"])
        for record in self._state.ledger.records:
            if record.number == number:
                return json_response(record.as_json() | {"body": record.body, "headers": record.headers})
        return json_response({"error": "no such request"}, status=404)

    async def wait(self, request: web.Request) -> web.Response:
        """The report once all conditions hold (`open`, `queued` exactly, the others at least); 408 if they never do."""
        wishes = {name: int(value) for name, value in request.query.items() if name != "timeout"}
        unknown = wishes.keys() - {"open", "queued", "held", "closed", "closed_by_client", "seen", "tokens"}
        if unknown:
            return json_response({"error": f"unknown conditions: {', '.join(unknown)}"}, status=422)
        is_met = await self._state.ledger.wait_for(
            lambda ledger: self._meets(ledger, wishes), timeout_s=float(request.query.get("timeout", "5"))
        )
        return json_response(self._report(), status=200 if is_met else 408)

    async def release(self, _request: web.Request) -> web.Response:
        """Let every held answer go on."""
        return json_response({"released": self._state.release()})

    async def reset(self, _request: web.Request) -> web.Response:
        """Faults off, the past forgotten, held answers released."""
        self._state.reset()
        return json_response({})

    async def refuse(self, request: web.Request) -> web.Response:
        """Refuse connections, for `seconds` if given; the control port goes on."""
        wishes = await request.json() if request.can_read_body else {}
        await self._refuse(wishes.get("seconds"))
        return json_response({})

    async def accept(self, _request: web.Request) -> web.Response:
        """Accept connections again."""
        await self._accept()
        return json_response({})

    def _report(self) -> dict[str, Any]:
        engine = self._state.engine
        return self._state.ledger.as_json() | {"queued": engine.queued_count, "running": engine.running_count}

    def _meets(self, ledger: Ledger, wishes: dict[str, int]) -> bool:
        counts = ledger.counts() | {"queued": self._state.engine.queued_count}
        return all(
            counts[name] == wish if name in ("open", "queued") else counts[name] >= wish
            for name, wish in wishes.items()
        )
