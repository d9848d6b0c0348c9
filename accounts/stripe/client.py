"""The connection to Stripe, and what its failures mean here."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import structlog
from django.conf import settings
from stripe import InvalidRequestError, RequestsClient, StripeClient, StripeError

from accounts.exceptions import PaymentProviderUnavailable

log = structlog.get_logger(__name__)

_CONNECT_SECONDS, _READ_SECONDS = 3.05, 15.0
_RETRIES = 2


def is_configured() -> bool:
    """Say whether the site collects payments by Stripe."""
    return bool(settings.STRIPE_SECRET_KEY and settings.STRIPE_WEBHOOK_SECRET)


def is_live() -> bool:
    """Say whether the key is one for real money."""
    return "_live_" in settings.STRIPE_SECRET_KEY[:8]


def stripe_client() -> StripeClient:
    """Return the client of the site's key; its connections are kept per thread."""
    return _client(settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE)


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn a failure of Stripe's into `PaymentProviderUnavailable`; what was asked and why it failed is logged."""
    try:
        yield
    except StripeError as error:
        level = log.error if isinstance(error, InvalidRequestError) else log.warning
        level("stripe_failed", asked=what, error=type(error).__name__, status=error.http_status, code=error.code)
        raise PaymentProviderUnavailable(
            "Payments cannot be reached right now. Nothing has changed; try again in a few minutes."
        ) from error


def is_missing(error: InvalidRequestError) -> bool:
    """Say whether Stripe has no such thing: it was deleted, or it is another account's."""
    return error.code == "resource_missing"


def metadata_of(thing: Any) -> dict[str, str]:
    """Return what the site has noted on a thing at Stripe."""
    return dict(thing.metadata.to_dict()) if getattr(thing, "metadata", None) else {}


@lru_cache(maxsize=4)
def _client(key: str, api_base: str) -> StripeClient:
    return StripeClient(
        key,
        base_addresses={"api": api_base} if api_base else None,
        max_network_retries=_RETRIES,
        http_client=RequestsClient(timeout=(_CONNECT_SECONDS, _READ_SECONDS)),
    )
