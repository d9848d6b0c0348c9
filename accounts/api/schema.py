"""How the OpenAPI schema names the ways to authenticate."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class _APIKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.APIKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "ck_…",
            "description": "An API key, made at `/v1/api-keys` or with `manage.py make_api_key`; it has scopes.",
        }


class _AccessTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.AccessTokenAuthentication"
    name = "accessToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A short-lived access token, from `POST /_allauth/app/v1/auth/login`;"
            " renewed at `POST /_allauth/app/v1/tokens/refresh`.",
        }


class _SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The site's own pages; methods that change something need the `X-CSRFToken` header.",
        }
