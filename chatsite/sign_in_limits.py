"""Says in HTTP's own words that somebody tries to sign in too often: 429, and when to try again."""

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from chatsite.middleware import changing_responses

_APPS_PREFIX = "/_allauth/"
_PREFIXES = ("/accounts/", _APPS_PREFIX)
_LIMIT_SECONDS = 60
"""The window of each limit that is answered by 429."""
_FAILED_SECONDS = 300
"""The window of failed passwords, which allauth tells as a form's error only."""


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


sign_in_limits = changing_responses(_told)
"""Middleware: adds the status and the header that allauth leaves out."""
