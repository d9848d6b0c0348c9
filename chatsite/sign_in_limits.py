"""Says in HTTP's own words that somebody tries to sign in too often: 429, and when to try again."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

_APPS_PREFIX = "/_allauth/"
_PREFIXES = ("/accounts/", _APPS_PREFIX)
_LIMIT_SECONDS = 60
"""The window of each limit that is answered by 429."""
_FAILED_SECONDS = 300
"""The window of failed passwords, which allauth tells as a form's error only."""


@sync_and_async_middleware
def sign_in_limits(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """Middleware: adds the status and the header that allauth leaves out."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _told(request, await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _told(request, response)

    return synchronous


def _told(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if not request.path_info.startswith(_PREFIXES):
        return response
    if getattr(request, "failed_too_often", False):
        if request.path_info.startswith(_APPS_PREFIX):
            response = JsonResponse({"status": 429})
        response.status_code = 429
        response["Retry-After"] = str(_FAILED_SECONDS)
    elif response.status_code == 429:
        response["Retry-After"] = str(_LIMIT_SECONDS)
    return response
