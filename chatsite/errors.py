"""The one table: domain error → HTTP. Every error of the API has the shape that OpenAI clients parse."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.response import Response

from foundation.database import DATABASE_UNREACHABLE
from foundation.errors import DomainError

log = structlog.get_logger(__name__)

STATUS_BY_CODE = {
    "malformed_json": 400,
    "malformed_request": 400,
    "invalid_webhook": 400,
    "not_authenticated": 401,
    "token_expired": 401,
    "key_revoked": 401,
    "scope_missing": 403,
    "csrf_failed": 403,
    "account_suspended": 403,
    "forbidden": 403,
    "model_not_in_tier": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "idempotency_conflict": 409,
    "generation_in_progress": 409,
    "transfer_in_progress": 409,
    "content_too_long": 413,
    "unsupported_media_type": 415,
    "invalid_request": 422,
    "requests_exceeded": 429,
    "tokens_exceeded": 429,
    "concurrency_exceeded": 429,
    "model_quota_exceeded": 429,
    "internal_error": 500,
    "overloaded": 503,
    "payment_provider_unavailable": 503,
    "no_capacity": 503,
}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What a program is told of an error."""

    code: str
    message: str
    param: str | None = None
    details: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return STATUS_BY_CODE[self.code]

    @property
    def body(self) -> dict[str, Any]:
        """Return `{"error": {...}}`."""
        error: dict[str, Any] = {"type": error_type(self.status), "code": self.code, "message": self.message}
        if self.param is not None:
            error["param"] = self.param
        if self.details is not None:
            error["details"] = self.details
        return {"error": error}

    def as_json(self) -> JsonResponse:
        """Return the answer outside REST framework's views."""
        headers = {"WWW-Authenticate": "Bearer", **self.headers} if self.status == 401 else self.headers
        return JsonResponse(self.body, status=self.status, headers=headers, json_dumps_params={"ensure_ascii": False})


MALFORMED = ErrorAnswer("malformed_request", "This request cannot be read.")
FORBIDDEN = ErrorAnswer("forbidden", "You may not do this.")
NOTHING_HERE = ErrorAnswer("not_found", "There is nothing at this address; /v1/docs/ lists what there is.")
NO_SUCH_METHOD = ErrorAnswer(
    "method_not_allowed", "This method does nothing here; the Allow header names those that do."
)
TOO_LARGE = ErrorAnswer("content_too_long", "The request's body is too large.")
FAULT = ErrorAnswer("internal_error", "Something went wrong here. Try again.")
STORES_AWAY = ErrorAnswer(
    "overloaded", "The service cannot store anything right now. Try again in a moment.", headers={"Retry-After": "2"}
)


def error_type(status: int) -> str:
    """Return the family of an error, named as OpenAI's clients know it."""
    families = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    return families.get(status, "server_error" if status >= 500 else "invalid_request_error")


def retry_after(error: DomainError) -> dict[str, str]:
    """Return the header that says when to come again: whoever waits exactly so many seconds is not too early."""
    seconds = error.retry_after_seconds
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Translate what a REST framework view raised; `None` leaves it to Django's own 500."""
    answer = answer_to(error)
    if answer is None:
        return None
    response = Response(answer.body, status=answer.status, headers=answer.headers)
    if answer.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def answer_to(error: Exception) -> ErrorAnswer | None:  # noqa: PLR0911 — a line for each kind
    """Return what to tell of an error; `None` for one that is a fault of this program."""
    match error:
        case DomainError():
            return _domain_error(error)
        case drf.ValidationError():
            return _validation_error(error)
        case drf.PermissionDenied() | PermissionDenied():
            return FORBIDDEN
        case Http404() | drf.NotFound():
            return NOTHING_HERE
        case RequestDataTooBig():
            return TOO_LARGE
        case SuspiciousOperation() | BadRequest():
            return MALFORMED
        case drf.APIException():
            return _framework_error(error)
    return _stores_away(error) if isinstance(error, DATABASE_UNREACHABLE) else None


def _domain_error(error: DomainError) -> ErrorAnswer:
    headers = {**error.headers, **retry_after(error)}
    details = error.details
    if details is None and error.code == "invalid_request" and error.param is not None:
        details = {error.param: [error.message]}
    return ErrorAnswer(error.code, error.message, error.param, details, headers)


def _stores_away(error: Exception) -> ErrorAnswer:
    """Nothing was acknowledged, so nothing is lost: the same call can simply be made again."""
    log.error("database_unreachable", error=type(error).__name__)
    return STORES_AWAY


def _validation_error(error: drf.ValidationError) -> ErrorAnswer:
    details = error.detail if isinstance(error.detail, dict) else {"body": error.detail}
    param, sentence = _first_fault(details)
    return ErrorAnswer("invalid_request", f"{param}: {sentence}", param, details)


def _first_fault(details: Any) -> tuple[str, str]:
    """Return the path of the first faulty field, such as `options.max_tokens`, and what is wrong there."""
    path: list[str] = []
    while isinstance(details, list | dict) and details:
        if isinstance(details, list):
            details = details[0]
            continue
        name, details = next(iter(details.items()))
        is_place_in_list = isinstance(name, int)
        if not is_place_in_list and (name != "body" or not path):
            path.append(str(name))
    return ".".join(path), str(details)


def _framework_error(error: drf.APIException) -> ErrorAnswer:
    match error:
        case drf.ParseError():
            return ErrorAnswer("malformed_json", str(error.detail))
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return ErrorAnswer("not_authenticated", str(error.detail))
        case drf.MethodNotAllowed():
            return NO_SUCH_METHOD
        case drf.NotAcceptable():
            return ErrorAnswer("not_acceptable", "What the Accept header asks for is not to be had here.")
        case drf.UnsupportedMediaType():
            return ErrorAnswer(
                "unsupported_media_type",
                "Send JSON in UTF-8, with `Content-Type: application/json`, and a file as `multipart/form-data`.",
            )
    return FAULT


@csrf_exempt
def not_found_json(request: HttpRequest) -> JsonResponse:
    """Answer an unknown `/v1` address."""
    return NOTHING_HERE.as_json()
