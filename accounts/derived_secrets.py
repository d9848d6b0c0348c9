"""Secrets that are kept nowhere: made anew, whenever one is told, of what it is for and the site's own key."""

import base64
import hmac
from uuid import UUID

from django.conf import settings


def derived_secret(purpose: bytes, identifier: UUID) -> str:
    """Return 256 bits that only this site can know, the same each time, as 43 characters that an address can hold."""
    digest = hmac.digest(settings.SECRET_KEY.encode(), purpose + identifier.bytes, "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
