"""The routes that generate nothing."""

from aiohttp import web

from inference.testing.documents import facts, prompt_tokens
from inference.testing.faults import FaultKind
from inference.testing.gate import read_body
from inference.testing.metrics import exposition, huge_exposition
from inference.testing.openai_dialect import as_tgi
from inference.testing.refusals import json_response
from inference.testing.rejections import invalid
from inference.testing.requests import from_chat, render_chat
from inference.testing.shapes import CHAT, GENERATE, check_shape
from inference.testing.state import TwinState


class Facts:
    """Health, facts, load and tokens. Only a standing fault for their path makes them say anything else."""

    def __init__(self, state: TwinState) -> None:
        self._state = state

    def add_to(self, app: web.Application) -> None:
        """Each under TGI's path."""
        for path in ("/", "/health", "/ping"):
            app.router.add_get(path, self._health)
        app.router.add_get("/info", self._info)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/chat_tokenize", self._chat_tokenize)

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response()

    async def _info(self, _request: web.Request) -> web.Response:
        if self._state.settings.dialect == "openai":
            raise web.HTTPNotFound
        return json_response(facts(self._state.settings))

    async def _metrics(self, request: web.Request) -> web.Response:
        for fault in self._state.faults.striking_elsewhere(request.path):
            if fault.kind is FaultKind.HUGE_METRICS:
                return web.Response(text=huge_exposition(self._state, fault.bytes or 1 << 20))
        return web.Response(text=exposition(self._state))

    async def _models(self, _request: web.Request) -> web.Response:
        name = self._state.settings.model_id
        model: dict[str, object] = {"id": name, "object": "model", "created": 0, "owned_by": name}
        if self._state.settings.dialect == "openai":
            model["max_model_len"] = self._state.settings.max_total_tokens
        return json_response({"object": "list", "data": [model]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        if self._state.settings.dialect == "openai":
            return await self._count(request)
        text = check_shape(await read_body(request), GENERATE)["inputs"]
        if not text:
            raise invalid("`inputs` cannot be empty")
        return json_response(prompt_tokens(text))

    async def _chat_tokenize(self, request: web.Request) -> web.Response:
        body = check_shape(await read_body(request), CHAT)
        text = render_chat(body["messages"]).text
        return json_response({"tokenize_response": prompt_tokens(text), "templated_text": text})

    async def _count(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        if isinstance(body, dict) and isinstance(body.get("prompt"), str):
            text = body["prompt"]
        else:
            text = from_chat(check_shape(as_tgi(body), CHAT), self._state.settings).prompt.text
        tokens = [token["id"] for token in prompt_tokens(text)]
        window = self._state.settings.max_total_tokens
        return json_response({"count": len(tokens), "max_model_len": window, "tokens": tokens})
