"""Turns what django-environ reads from `EMAIL_URL` into an entry of Django's `MAILERS`."""

from collections.abc import Mapping
from typing import Any

SMTP_TIMEOUT_SECONDS = 10
_OPTION_NAMES = {
    "EMAIL_HOST": "host",
    "EMAIL_PORT": "port",
    "EMAIL_HOST_USER": "username",
    "EMAIL_HOST_PASSWORD": "password",
    "EMAIL_USE_TLS": "use_tls",
    "EMAIL_USE_SSL": "use_ssl",
}


def mailer(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the backend and its options; django-environ itself still speaks the settings that `MAILERS` replaces."""
    backend = config["EMAIL_BACKEND"]
    options: dict[str, Any] = {}
    if backend.endswith("smtp.EmailBackend"):
        options = {option: config[name] for name, option in _OPTION_NAMES.items() if config.get(name)}
        options["timeout"] = SMTP_TIMEOUT_SECONDS
    elif backend.endswith("console.EmailBackend"):
        backend = "chatsite.console_mail.EmailBackend"
    elif backend.endswith("filebased.EmailBackend"):
        options = {"file_path": config["EMAIL_FILE_PATH"]}
    return {"BACKEND": backend, "OPTIONS": options}
