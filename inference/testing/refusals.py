"""The faults that strike before an answer has begun."""

import asyncio

from aiohttp import web

from inference.testing.documents import as_bytes
from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import plain_error
from inference.testing.rejections import rejection
from inference.testing.wire import Wire

_HTML = (
    "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"
)


async def struck_before_headers(request: web.Request, faults: tuple[Fault, ...]) -> web.StreamResponse | None:
    """The response that a fault gives in the place of the right one, if one does; perhaps only a delay."""
    for fault in faults:
        if fault.kind is FaultKind.DELAY_HEADERS:
            await asyncio.sleep((fault.ms or 1_000.0) / 1000)
        elif fault.kind is FaultKind.STALL_HEADERS:
            await asyncio.Event().wait()
        elif fault.kind is FaultKind.DISCONNECT:
            return _disconnected(request, fault)
        elif (refusal := _refusal(fault)) is not None:
            return refusal
    return None


def json_response(body: object, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON document, compact as TGI writes it."""
    raw = body if isinstance(body, bytes) else as_bytes(body)
    return web.Response(body=raw, status=status, headers=headers, content_type="application/json")


def _refusal(fault: Fault) -> web.Response | None:
    match fault.kind:
        case FaultKind.STATUS:
            return _text(fault.status, fault.body, fault.content_type)
        case FaultKind.PLAIN_422:
            return _text(422, "Failed to deserialize the JSON body into the target type: .: injected")
        case FaultKind.HTML_502:
            return _text(502, _HTML, "text/html")
        case FaultKind.EMPTY_401:
            return web.Response(status=401)
        case FaultKind.OVERLOADED_429:
            return json_response(plain_error(rejection("overloaded")), status=429)
    return None


def _text(status: int, text: str, content_type: str = "text/plain; charset=utf-8") -> web.Response:
    return web.Response(body=text.encode(), status=status, headers={"content-type": content_type})


def _disconnected(request: web.Request, fault: Fault) -> web.Response:
    wire = Wire(request.transport)
    (wire.close if fault.how == "fin" else wire.reset)()
    return web.Response(status=500)
