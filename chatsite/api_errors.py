"""Keeps every error below `/v1` in the one shape, wherever in the stack it arises."""

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from chatsite.errors import FAULT, FORBIDDEN, MALFORMED, NO_SUCH_METHOD, NOTHING_HERE, STORES_AWAY, TOO_LARGE, answer_to
from chatsite.middleware import changing_responses

_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")
_ANSWERS = {
    400: MALFORMED,
    403: FORBIDDEN,
    404: NOTHING_HERE,
    405: NO_SUCH_METHOD,
    413: TOO_LARGE,
    503: STORES_AWAY,
}


def is_of_the_api(request: HttpRequest) -> bool:
    """Say whether the caller is a program."""
    return request.path_info == "/v1" or request.path_info.startswith("/v1/")


class ApiExceptions(MiddlewareMixin):
    """Middleware, the innermost: answers by the error table what a view outside REST framework raised."""

    def process_exception(self, request: HttpRequest, error: Exception) -> JsonResponse | None:
        answer = answer_to(error) if is_of_the_api(request) else None
        return answer.as_json() if answer else None


def _in_shape(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code < 400 or not is_of_the_api(request):
        return response
    if response.get("Content-Type", "").startswith("application/json"):
        return response
    shaped = _ANSWERS.get(response.status_code, FAULT).as_json()
    shaped.status_code = response.status_code
    for name in _KEPT_HEADERS:
        if name in response:
            shaped[name] = response[name]
    response.close()
    return shaped


api_errors = changing_responses(_in_shape)
"""Middleware, an outer one: replaces an error page, with `DEBUG` a whole traceback, that a program would get."""
