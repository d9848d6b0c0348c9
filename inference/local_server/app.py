"""The web application: routes, errors, key and headers, joined around one running engine."""

import hmac
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from inference.local_server import chat, completions, facts, generate
from inference.local_server.chat_template import ChatTemplate
from inference.local_server.engine import RunningEngine, connect
from inference.local_server.errors import RejectedBodyError, RequestError
from inference.local_server.generate import json_response
from inference.local_server.generation import Generator
from inference.local_server.load import Load
from inference.local_server.local_models import LocalModel
from inference.local_server.service import SERVICE, Service
from inference.local_server.validation import Limits

_OPEN_PATHS = {"/health", "/ping", "/info", "/metrics", "/v1/models", "/chat_tokenize"}
_CORS = {
    "access-control-allow-origin": "*",
    "vary": "origin, access-control-request-method, access-control-request-headers",
}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the server meets its clients."""

    parallel: int
    window_tokens: int
    max_concurrent_requests: int
    keep_alive_seconds: float = 15.0
    api_key: str | None = None


def build_app(running: RunningEngine, model: LocalModel, settings: ServerSettings) -> web.Application:
    """The application. It needs a server that cancels a handler when its client leaves."""
    limits = Limits(
        max_total_tokens=settings.window_tokens,
        max_input_tokens=settings.window_tokens - 1,
        max_concurrent_requests=settings.max_concurrent_requests,
    )
    middlewares = [_plain_errors, _require_key(settings.api_key)]
    app = web.Application(middlewares=middlewares, client_max_size=limits.payload_limit_bytes)

    async def service_context(app: web.Application) -> AsyncGenerator[None]:
        async with connect(running) as engine:
            load = Load(permits=settings.max_concurrent_requests, seats=settings.parallel)
            app[SERVICE] = Service(
                model=model,
                engine=engine,
                generator=Generator(engine, load, limits, model.sampling),
                load=load,
                limits=limits,
                template=ChatTemplate(engine.template),
                keep_alive_seconds=settings.keep_alive_seconds,
            )
            yield

    app.cleanup_ctx.append(service_context)
    app.on_response_prepare.append(_add_common_headers)
    app.add_routes(
        [
            web.post("/", generate.compatible),
            web.post("/generate", generate.generate),
            web.post("/generate_stream", generate.generate_stream),
            web.post("/tokenize", generate.tokenize),
            web.post("/v1/chat/completions", chat.chat_completions),
            web.post("/chat_tokenize", chat.chat_tokenize),
            web.post("/v1/completions", completions.completions),
            web.get("/", facts.health),
            web.get("/health", facts.health),
            web.get("/ping", facts.health),
            web.get("/info", facts.info),
            web.get("/metrics", facts.metrics),
            web.get("/v1/models", facts.models),
        ]
    )
    return app


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as TGI words them: JSON for a judged request, plain text for a body that is none, else empty."""
    try:
        return await handler(request)
    except RequestError as error:
        response = json_response({"error": str(error), "error_type": error.code})
        response.set_status(error.status)
        return response
    except RejectedBodyError as error:
        return web.Response(status=error.status, text=error.text, content_type="text/plain", charset="utf-8")
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=405, headers={"allow": error.headers["allow"]})
    except web.HTTPNotFound:
        return web.Response(status=404)


def _require_key(api_key: str | None) -> Middleware:
    """Without the key every route but the factual ones answers an empty 401."""
    expected = f"bearer {api_key}".lower().encode()

    @web.middleware
    async def require_key(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_open = request.path in _OPEN_PATHS or (request.path == "/" and request.method == "GET")
        given = request.headers.get("authorization", "").lower().encode()
        if api_key is None or is_open or hmac.compare_digest(given, expected):
            return await handler(request)
        return web.Response(status=401)

    return require_key


async def _add_common_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_CORS)
    response.headers.popall("server", None)
