"""The routes that generate."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import web

from inference.testing.chat_frames import chat_face
from inference.testing.directives import InvalidDirectiveError, parse_directive
from inference.testing.documents import chat_completion, generated, text_completion
from inference.testing.exchange import Exchange, Route
from inference.testing.faults import Fault
from inference.testing.frames import CompletionFace, GenerateFace
from inference.testing.gate import read_body
from inference.testing.openai_dialect import OpenAIFace, as_tgi, completion_document
from inference.testing.refusals import struck_before_headers
from inference.testing.rejections import Rejected, Unreadable
from inference.testing.requests import Prompt, from_chat, from_completion, from_generate
from inference.testing.shapes import CHAT, COMPLETION, GENERATE, VERTEX, check_shape
from inference.testing.state import TwinState

type RouteMaker = Callable[[object], Route]


class Generating:
    """Reads a request, records it, lets its faults strike, and answers it."""

    def __init__(self, state: TwinState) -> None:
        self._state = state

    def add_to(self, app: web.Application) -> None:
        """Each path with the way to read its body."""
        makers: dict[str, RouteMaker] = {
            "/": self._compat,
            "/generate": partial(self._generate, stream=False),
            "/generate_stream": partial(self._generate, stream=True),
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._completion,
            "/invocations": self._invocation,
            "/vertex": self._vertex,
        }
        for path, make in makers.items():
            app.router.add_post(path, partial(self._answer, make))

    async def _answer(self, make: RouteMaker, request: web.Request) -> web.StreamResponse:
        body = await read_body(request)
        route = make(body)
        prompt = route.wanted[0].prompt
        faults = self._faults(request, prompt)
        headers = {name.lower(): value for name, value in request.headers.items()}
        record = self._state.ledger.open(request.path, prompt.user, body, headers, is_continuation=bool(prompt.partial))
        record.faults = tuple(fault.kind for fault in faults)
        try:
            struck = await struck_before_headers(request, faults)
            if struck is None:
                return await Exchange(self._state, request, route, record).run(faults)
        except Rejected as rejected:
            record.close("server", rejected.error_type)
            raise
        except asyncio.CancelledError:
            record.close("server" if self._state.is_stopping else "client", "cancelled")
            raise
        record.close("server", "refused")
        return struck

    def _faults(self, request: web.Request, prompt: Prompt) -> tuple[Fault, ...]:
        try:
            asked = parse_directive(prompt.user).faults
        except InvalidDirectiveError as error:
            raise Unreadable(400, f"twin: {error}") from error
        return self._state.faults.striking(request.path, prompt.user, asked=asked, continues=bool(prompt.partial))

    def _compat(self, body: object) -> Route:
        """`/`: like /generate, its document in an array; the prompt is part of the text unless that is refused."""
        shaped = check_shape(body, GENERATE)
        given: dict[str, Any] = shaped.get("parameters", {"do_sample": True})
        full_text = given.get("return_full_text")
        parameters = given | {"return_full_text": True if full_text is None else full_text}
        route = self._generate(shaped | {"parameters": parameters}, stream=shaped.get("stream", False))
        return replace(route, document=lambda plans: [generated(plans[0])])

    def _generate(self, body: object, *, stream: bool) -> Route:
        settings = self._state.settings
        wanted = from_generate(check_shape(body, GENERATE), settings, stream=stream)
        return Route(partial(GenerateFace, settings), lambda plans: generated(plans[0]), [wanted])

    def _chat(self, body: object) -> Route:
        settings = self._state.settings
        if settings.dialect == "openai":
            wanted = from_chat(check_shape(as_tgi(body), CHAT), settings)
            return Route(partial(OpenAIFace, settings), lambda plans: completion_document(plans[0]), [wanted])
        wanted = from_chat(check_shape(body, CHAT, null_options=settings.version < (3, 2)), settings)
        return Route(partial(chat_face, settings), lambda plans: chat_completion(settings, plans[0]), [wanted])

    def _completion(self, body: object) -> Route:
        settings = self._state.settings
        wanted = from_completion(check_shape(body, COMPLETION), settings)
        return Route(partial(CompletionFace, settings), partial(text_completion, settings), wanted)

    def _invocation(self, body: object) -> Route:
        keys = body.keys() if isinstance(body, dict) else ()
        for key, make in (("inputs", self._compat), ("messages", self._chat), ("prompt", self._completion)):
            if key in keys:
                return make(body)
        raise Unreadable(422, "Failed to deserialize the JSON body into the target type: no variant matches")

    def _vertex(self, body: object) -> Route:
        settings = self._state.settings
        instances = check_shape(body, VERTEX)["instances"]
        wanted = [
            from_chat(check_shape(one, CHAT), settings)
            if isinstance(one, dict) and "messages" in one
            else from_generate(check_shape(one, GENERATE), settings, stream=False)
            for one in instances
        ]
        wanted = [replace(one, stream=False) for one in wanted]
        face = partial(GenerateFace, settings)
        return Route(face, lambda plans: {"predictions": [plan.answer.text for plan in plans]}, wanted)
