"""One generation, from the parsed request to its last byte."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from aiohttp import web

from inference.testing.answers import Answer
from inference.testing.directives import parse_directive
from inference.testing.disturbances import disturbed_answer, disturbed_script, disturbed_tokens
from inference.testing.documents import compute_headers, timing_headers
from inference.testing.engine import Overloaded, Seat
from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import Face, tokens_of
from inference.testing.ledger import Record
from inference.testing.openai_dialect import without_stop_text
from inference.testing.plans import Plan, plan_of
from inference.testing.player import Ending, Player
from inference.testing.refusals import json_response
from inference.testing.rejections import Rejected, rejection
from inference.testing.requests import Wanted, check_streamable
from inference.testing.script import Script
from inference.testing.state import TwinState
from inference.testing.streams import Pace, closed, interleaved, stamped, token_script
from inference.testing.wire import Wire


@dataclass(frozen=True, slots=True)
class Route:
    """How one route shows what was generated: as a stream, as a document, and as an error."""

    face: Callable[[Plan], Face]
    document: Callable[[list[Plan]], object]
    wanted: list[Wanted]


class Exchange:
    """Admits, plans, plays and closes one request."""

    def __init__(self, state: TwinState, request: web.Request, route: Route, record: Record) -> None:
        self._state = state
        self._request = request
        self._route = route
        self._record = record
        self._faults: tuple[Fault, ...] = ()

    async def run(self, faults: tuple[Fault, ...]) -> web.StreamResponse:
        """Answer the request with these faults worked in; a client that leaves ends it, unless a fault ignores that."""
        self._faults = faults
        started = time.monotonic()
        if self._route.wanted[0].stream:
            return await self._stream()
        return await self._document(started)

    async def _stream(self) -> web.StreamResponse:
        headers = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
        wrong = next((fault for fault in self._faults if fault.kind is FaultKind.WRONG_CONTENT_TYPE), None)
        if wrong is not None:
            headers["content-type"] = wrong.content_type
        response = web.StreamResponse(headers=headers | compute_headers(self._route.wanted))
        if self._state.settings.dialect == "openai":
            self._plan()  # a refusal comes before the headers
        response.enable_chunked_encoding()
        await response.prepare(self._request)
        try:
            await self._play(Wire(self._request.transport))
        except Rejected as rejected:
            self._reject(rejected)
            face = self._route.face(Plan(self._route.wanted[0], Answer((), "stop", has_eos=True), 0))
            for frame in face.error(rejected):
                await response.write(frame)
        await response.write_eof()
        return response

    async def _document(self, started: float) -> web.StreamResponse:
        error = next((fault for fault in self._faults if fault.kind is FaultKind.ERROR), None)
        if error is not None:
            raise rejection(error.error_type, error.message)
        plans = await self._play(Wire(self._request.transport, is_silent=True))
        headers = timing_headers(plans, time.monotonic() - started)
        return json_response(self._route.document(plans), headers=headers)

    async def _play(self, wire: Wire) -> list[Plan]:
        if self._route.wanted[0].stream:
            check_streamable(self._route.wanted[0])
        keep_alive_ms = self._state.settings.keep_alive_ms
        player = Player(self._state.clock, wire, self._record, self._state.held, keep_alive_ms=keep_alive_ms)
        plans: list[Plan] = []
        seat = self._admit(lambda: player.play(self._script(plans)))
        player.done.add_done_callback(lambda _: seat.leave())
        try:
            plans.extend(self._plan())
        except Rejected:
            player.end(Ending.ABANDONED)
            raise
        if seat.is_running:
            seat.begin()
        else:
            player.wait()
        await self._finish(player)
        return plans

    def _admit(self, begin: Callable[[], None]) -> Seat:
        settings = self._state.settings
        try:
            return self._state.engine.admit(begin, permits=settings.permits, batch_size=settings.batch_size)
        except Overloaded:
            raise rejection("overloaded") from None

    async def _finish(self, player: Player) -> None:
        try:
            await asyncio.wait([player.done])
        except asyncio.CancelledError:
            self._record.close("server" if self._state.is_stopping else "client", "cancelled")
            self._state.failures["dropped"] += 1
            if not any(fault.kind is FaultKind.IGNORE_DISCONNECT for fault in self._faults):
                player.end(Ending.ABANDONED)
            raise
        self._record.close("server", player.done.result())

    def _plan(self) -> list[Plan]:
        plans = (plan_of(wanted, self._state.settings, index=index) for index, wanted in enumerate(self._route.wanted))
        return [replace(plan, answer=disturbed_answer(self._shown(plan), self._faults)) for plan in plans]

    def _shown(self, plan: Plan) -> Answer:
        if self._state.settings.dialect == "tgi":
            return plan.answer
        return without_stop_text(plan.answer, plan.wanted.parameters.get("stop") or [])

    def _script(self, plans: list[Plan]) -> Script:
        faces = [self._route.face(plan) for plan in plans]
        scripts = [self._token_script(plan, face) for plan, face in zip(plans, faces, strict=True)]
        script = scripts[0] if len(scripts) == 1 else interleaved(scripts)
        return disturbed_script(closed(script, faces[0]), self._faults, faces[0])

    def _token_script(self, plan: Plan, face: Face) -> Script:
        directive = parse_directive(plan.wanted.prompt.user)
        settings = self._state.settings
        pace = Pace(
            settings.prefill_ms if directive.prefill_ms is None else directive.prefill_ms,
            settings.token_ms if directive.token_ms is None else directive.token_ms,
        )
        tokens = stamped(plan.answer) if directive.stamp else tokens_of(plan.answer)
        return token_script(face, disturbed_tokens(tokens, self._faults), pace)

    def _reject(self, rejected: Rejected) -> None:
        self._state.failures[rejected.error_type] += 1
        self._record.close("server", rejected.error_type)
