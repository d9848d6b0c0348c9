"""The OpenAPI schema's address, and what the schema says of every operation alike: its errors."""

from typing import Any

from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.negotiation import DefaultContentNegotiation

_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "code", "message"],
            "properties": {
                "type": {"type": "string", "description": "The family, as OpenAI's clients know it."},
                "code": {"type": "string", "description": "What went wrong, for programs."},
                "message": {"type": "string", "description": "What went wrong and what to do, for people."},
                "param": {"type": "string", "description": "The field, parameter or header at fault."},
                "details": {"description": "More; with 422 each faulty field and what is wrong with it."},
            },
        }
    },
}
_ALWAYS = {
    "401": "No credential, or one that is no longer good: `not_authenticated`, `token_expired`, `key_revoked`.",
    "403": "The credential may not do this: `scope_missing`, `csrf_failed`, `account_suspended`.",
    "500": "`internal_error`: a fault of the service.",
    "503": "`overloaded`: nothing can be read or stored now; try again after `Retry-After` seconds.",
}
_NOT_FOUND = {"404": "`not_found`; also for what belongs to somebody else."}
_INVALID = {"422": "`invalid_request`: `details` names each field."}
_WITH_A_BODY = {
    "400": "`malformed_json`: the body is no JSON.",
    "413": "`content_too_long`: the body or the message is too long.",
    "415": "`unsupported_media_type`: the body is not declared as `application/json` in UTF-8.",
}
_WITH_A_REPLY = {
    "404": "`not_found`; also for what belongs to somebody else. For an unknown model `details.allowed` has the "
    "names of those that there are.",
    "409": "`generation_in_progress`, or `idempotency_conflict`: the key was used for another request.",
    "403": "The credential may not do this: `scope_missing`, `csrf_failed`, `account_suspended`; or "
    "`model_not_in_tier`: `details.allowed` has the names of the models that the tier has.",
    "429": "A limit of the tier is reached: `requests_exceeded`, `tokens_exceeded`, `concurrency_exceeded`, "
    "`model_quota_exceeded`. Try again after `Retry-After` seconds; `details` says when the limit resets.",
    "503": "Try again after `Retry-After` seconds: `overloaded`, more is asked than the model servers can answer, and "
    "nothing was stored; or `no_capacity`, the answer was begun and could not be finished.",
}
_WITH_A_FILE = {
    "409": "`transfer_in_progress`: several files of yours are being imported.",
    "415": "`unsupported_media_type`: the body is not declared as `multipart/form-data`.",
}
_TEXTS = {
    "X-Request-ID": "Names this call in the service's log.",
    "Retry-After": "Seconds to wait.",
    "WWW-Authenticate": "`Bearer`.",
    "x-ratelimit-limit-requests": "Messages that the tier allows within its window.",
    "x-ratelimit-remaining-requests": "How many of them are left.",
    "x-ratelimit-reset-requests": "When the oldest leaves the window, such as `2h59m8s`.",
    "x-ratelimit-limit-tokens": "Tokens that the tier allows within a day; days are UTC.",
    "x-ratelimit-remaining-tokens": "How many of them are left.",
    "x-ratelimit-reset-tokens": "When the next day begins, such as `7h12m0s`.",
}
_HEADERS = {name: {"description": text, "schema": {"type": "string"}} for name, text in _TEXTS.items()}


class SchemaView(SpectacularAPIView):
    """`/v1/schema/`: JSON, or YAML for who asks by `Accept` or `?format=`."""

    content_negotiation_class = DefaultContentNegotiation
    renderer_classes = [OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer, OpenApiYamlRenderer2]


class DocsView(SpectacularSwaggerSplitView):
    """`/v1/docs/`: the schema as a page."""

    content_negotiation_class = DefaultContentNegotiation
    url_name = "schema"
    title = "Chat API"
    template_name = "api/docs.html"  # the package's own has an inline style, which the site's policy forbids


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to the finished schema what holds everywhere: errors, headers, and that unknown fields are refused."""
    schemas = result["components"]["schemas"]
    schemas["Error"] = _ERROR_SCHEMA
    result["components"]["headers"] = _HEADERS
    for name, schema in schemas.items():
        if name.endswith("Request"):
            schema["additionalProperties"] = False
    for path, item in result["paths"].items():
        for operation in item.values():
            for status, description in _errors_of(path, operation).items():
                operation["responses"].setdefault(status, _error_response(description))
            for status, response in operation["responses"].items():
                response["headers"] = _headers_of(operation, status)
    return result


def _errors_of(path: str, operation: dict[str, Any]) -> dict[str, str]:
    errors = dict(_ALWAYS)
    has_body = "requestBody" in operation
    if "{" in path or has_body:
        errors |= _NOT_FOUND
    if has_body or any(parameter["in"] != "path" for parameter in operation.get("parameters", [])):
        errors |= _INVALID
    if has_body:
        errors |= _WITH_A_BODY
    if has_body and "multipart/form-data" in operation["requestBody"]["content"]:
        errors |= _WITH_A_FILE
    if _makes_a_reply(operation):
        errors |= _WITH_A_REPLY
    return dict(sorted(errors.items()))


def _makes_a_reply(operation: dict[str, Any]) -> bool:
    return any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", []))


def _error_response(description: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": description, "content": content}


def _headers_of(operation: dict[str, Any], status: str) -> dict[str, Any]:
    names = ["X-Request-ID"]
    if status in ("429", "503"):
        names.append("Retry-After")
    if _makes_a_reply(operation) and status in ("200", "429"):
        names += [name for name in _HEADERS if name.startswith("x-ratelimit-")]
    if status == "401":
        names.append("WWW-Authenticate")
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
