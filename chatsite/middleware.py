"""Middleware of the whole site."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from foundation.ids import new_id

HEADER = "X-Request-ID"

type _Handler = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


def changing_responses(change: Callable[[HttpRequest, HttpResponseBase], HttpResponseBase]) -> Callable[..., _Handler]:
    """Return middleware that answers with what `change` makes of each response, in threads and on the loop alike."""

    @sync_and_async_middleware
    def middleware(get_response: _Handler) -> _Handler:
        if iscoroutinefunction(get_response):

            async def asynchronous(request: HttpRequest) -> HttpResponseBase:
                return change(request, await get_response(request))

            return asynchronous

        def synchronous(request: HttpRequest) -> HttpResponseBase:
            response = get_response(request)
            assert isinstance(response, HttpResponseBase)
            return change(request, response)

        return synchronous

    return middleware


def _begin(request: HttpRequest) -> str:
    # A client's own request id is never trusted: it would let one caller write into another's log lines.
    request_id = str(new_id())
    request.META["request_id"] = request_id
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id)
    return request_id


@sync_and_async_middleware
def request_id(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """Give every request an id, bind it to the log lines and answer it as `X-Request-ID`."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            identifier = _begin(request)
            response: HttpResponseBase = await get_response(request)
            response[HEADER] = identifier
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        identifier = _begin(request)
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)
        response[HEADER] = identifier
        return response

    return synchronous
