"""What `manage.py check --deploy` says about the settings of a site that people use."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host


def check_mail(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warn where nobody can confirm an address, because mail is only printed."""
    backend = settings.MAILERS["default"]["BACKEND"]
    if settings.ACCOUNT_EMAIL_VERIFICATION == "mandatory" and backend.endswith("console.EmailBackend"):
        hint = "Set EMAIL_URL, for example to smtp+tls://user:password@mail.example.org:587."
        return [checks.Warning("Addresses must be confirmed, but mail is only printed.", hint=hint, id="chatsite.W001")]
    return []


def check_site_url(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warn where the links that the site sends lead nowhere."""
    address = urlsplit(settings.SITE_URL)
    if validate_host(address.hostname or "", settings.ALLOWED_HOSTS) and (address.scheme == "https") == settings.HTTPS:
        return []
    hint = "Set SITE_URL to the address in the browser; its host must be one of ALLOWED_HOSTS."
    return [checks.Warning(f"SITE_URL is {settings.SITE_URL}.", hint=hint, id="chatsite.W002")]
