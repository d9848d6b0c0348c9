"""The one table: domain error → HTTP. Every error of the API has the shape that OpenAI clients parse."""

from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

from foundation.database import DATABASE_UNREACHABLE
from foundation.errors import DomainError

log = structlog.get_logger(__name__)

STATUS_BY_CODE = {
    "malformed_json": 400,
    "not_authenticated": 401,
    "token_expired": 401,
    "key_revoked": 401,
    "scope_missing": 403,
    "csrf_failed": 403,
    "model_not_in_tier": 403,
    "account_suspended": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "idempotency_conflict": 409,
    "generation_in_progress": 409,
    "content_too_long": 413,
    "unsupported_media_type": 415,
    "invalid_request": 422,
    "requests_exceeded": 429,
    "tokens_exceeded": 429,
    "concurrency_exceeded": 429,
    "model_quota_exceeded": 429,
    "input_blocked": 451,
    "internal_error": 500,
    "overloaded": 503,
    "no_capacity": 503,
}


def error_type(status: int) -> str:
    """Return the family of an error, named as OpenAI's clients know it."""
    families = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    return families.get(status, "server_error" if status >= 500 else "invalid_request_error")


def error_body(
    code: str, message: str, *, param: str | None = None, details: Any = None, status: int | None = None
) -> dict[str, Any]:
    """Return `{"error": {...}}`."""
    error: dict[str, Any] = {"type": error_type(status or STATUS_BY_CODE[code]), "code": code, "message": message}
    if param is not None:
        error["param"] = param
    if details is not None:
        error["details"] = details
    return {"error": error}


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Translate what a view raised; `None` leaves it to Django's own 500."""
    if isinstance(error, DomainError):
        return _domain_error(error)
    if isinstance(error, DATABASE_UNREACHABLE):
        return _stores_away(error)
    if isinstance(error, drf.ValidationError):
        return _validation_error(error)
    if isinstance(error, Http404 | drf.NotFound):
        return _response("not_found", "There is nothing at this address that you may see.")
    if isinstance(error, PermissionDenied | drf.PermissionDenied):
        code = getattr(error, "code", None) or "scope_missing"
        return _response(code if code in STATUS_BY_CODE else "scope_missing", str(error))
    if isinstance(error, drf.APIException):
        return _framework_error(error)
    return None


def _domain_error(error: DomainError) -> Response:
    response = _response(error.code, error.message, param=error.param, details=error.details)
    if error.retry_after_seconds is not None:
        response["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
    for name, value in error.headers.items():
        response[name] = value
    return response


def _stores_away(error: Exception) -> Response:
    """Nothing was acknowledged, so nothing is lost: the same call can simply be made again."""
    log.error("database_unreachable", error=type(error).__name__)
    response = _response("overloaded", "The service cannot store anything right now. Try again in a moment.")
    response["Retry-After"] = "2"
    return response


def _validation_error(error: drf.ValidationError) -> Response:
    details = error.detail if isinstance(error.detail, dict) else {"body": error.detail}
    field = next(iter(details), "body")
    message = f"{field}: {_first_sentence(details[field])}"
    return _response("invalid_request", message, param=field, details=details)


def _first_sentence(value: Any) -> str:
    while isinstance(value, list | dict) and value:
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
    return str(value)


def _framework_error(error: drf.APIException) -> Response:
    codes: dict[type[drf.APIException], str] = {
        drf.ParseError: "malformed_json",
        drf.NotAuthenticated: "not_authenticated",
        drf.AuthenticationFailed: "not_authenticated",
        drf.MethodNotAllowed: "method_not_allowed",
        drf.NotAcceptable: "not_acceptable",
        drf.UnsupportedMediaType: "unsupported_media_type",
    }
    stated = getattr(error.detail, "code", None)
    code = stated if stated in STATUS_BY_CODE else codes.get(type(error), "internal_error")
    return _response(code, str(error.detail))


def _response(code: str, message: str, *, param: str | None = None, details: Any = None) -> Response:
    response = Response(error_body(code, message, param=param, details=details), status=STATUS_BY_CODE[code])
    if response.status_code == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def not_found_json(request: HttpRequest) -> JsonResponse:
    """Answer an unknown `/v1` address."""
    return JsonResponse(error_body("not_found", f"There is no {request.path} in this API; see /v1/docs/."), status=404)
