"""What stands around every route: keys, the faults of the small routes, and the shapes of an error."""

import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from inference.testing.frames import plain_error
from inference.testing.openai_dialect import error_document
from inference.testing.refusals import json_response, struck_before_headers
from inference.testing.rejections import Rejected, Unreadable
from inference.testing.shapes import parse_json
from inference.testing.state import TwinState

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTROL_PREFIX = "/_twin/"
GENERATING_PATHS = (
    "/",
    "/generate",
    "/generate_stream",
    "/v1/chat/completions",
    "/v1/completions",
    "/invocations",
    "/vertex",
)
_KEYLESS_PATHS = ("/health", "/ping", "/info", "/metrics", "/v1/models", "/chat_tokenize")
_JSON_TYPE = re.compile(r"application/(.+\+)?json")


class Gate:
    """A middleware over one twin's state."""

    def __init__(self, state: TwinState) -> None:
        self._state = state

    def add_to(self, app: web.Application) -> None:
        """Around everything that the application serves."""
        app.middlewares.append(self._pass)
        app.on_response_prepare.append(_allow_origins)

    @web.middleware
    async def _pass(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(CONTROL_PREFIX):
            return await handler(request)
        if not self._has_key(request):
            return web.Response(status=401)
        if not _generates(request):
            struck = await struck_before_headers(request, self._state.faults.striking_elsewhere(request.path))
            if struck is not None:
                return struck
        return await self._answered(request, handler)

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Rejected as rejected:
            self._state.failures[rejected.error_type] += 1
            return self._refused(rejected)
        except Unreadable as unreadable:
            return web.Response(text=unreadable.text, status=unreadable.status)
        except web.HTTPRequestEntityTooLarge:
            return web.Response(text="Failed to buffer the request body: length limit exceeded", status=413)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
            return web.Response(status=error.status)

    def _refused(self, rejected: Rejected) -> web.Response:
        if self._state.settings.dialect == "tgi":
            return json_response(plain_error(rejected), status=rejected.status)
        body = error_document(rejected)
        return json_response(body, status=body["error"]["code"])

    def _has_key(self, request: web.Request) -> bool:
        key = self._state.settings.api_key
        if key is None or request.path in _KEYLESS_PATHS or (request.path == "/" and request.method == "GET"):
            return True
        return request.headers.get("Authorization", "").lower() == f"bearer {key}".lower()


async def read_body(request: web.Request) -> object:
    """The JSON of a POST, by the rules of TGI's extractor."""
    if not _JSON_TYPE.fullmatch(request.content_type):
        raise Unreadable(415, "Expected request with `Content-Type: application/json`")
    return parse_json(await request.read())


def _generates(request: web.Request) -> bool:
    return request.method == "POST" and request.path in GENERATING_PATHS


async def _allow_origins(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["access-control-allow-origin"] = "*"
