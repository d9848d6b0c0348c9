"""What allauth is told of the organisation's OpenID Connect provider."""

from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

PROVIDER_ID = "oidc"


def oidc_provider(
    *, issuer: str, client_id: str, client_secret: str, name: str, allows_http: bool = False
) -> dict[str, dict[str, Any]]:
    """Return `SOCIALACCOUNT_PROVIDERS`; without an issuer there is none."""
    if not issuer:
        return {}
    if not allows_http and not issuer.startswith("https://"):
        raise ImproperlyConfigured("OIDC_ISSUER must be an https:// address.")
    if not client_id or not client_secret:
        raise ImproperlyConfigured("With OIDC_ISSUER, set OIDC_CLIENT_ID and OIDC_CLIENT_SECRET.")
    app = {
        "provider_id": PROVIDER_ID,
        "name": name,
        "client_id": client_id,
        "secret": client_secret,
        "settings": {"server_url": issuer.rstrip("/")},
    }
    return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}


def origin_of(address: str) -> str:
    """Return scheme and host of an address; nothing of nothing."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
