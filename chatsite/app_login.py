"""Reads what apps send to sign in as strictly as the API reads its bodies."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

_PREFIX = "/_allauth/"


@sync_and_async_middleware
def strict_app_login(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """Middleware: refuses a body for allauth's app login that is too long or no JSON by RFC 8259, in allauth's shape.

    allauth's reader lets lone surrogates through, of which no password hash can be made, and fails on deep nesting.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = _refusal(request) or await get_response(request)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        response = _refusal(request) or get_response(request)
        assert isinstance(response, HttpResponseBase)
        return response

    return synchronous


def _refusal(request: HttpRequest) -> HttpResponseBase | None:
    if not request.path_info.startswith(_PREFIX):
        return None
    try:
        if request.body:
            orjson.loads(request.body)
    except RequestDataTooBig:
        return JsonResponse({"status": 413}, status=413)
    except orjson.JSONDecodeError:
        return JsonResponse({"status": 400}, status=400)
    return None
