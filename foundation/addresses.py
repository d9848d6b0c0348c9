"""Addresses of this site's pages, whole: for mails, and for other sites to lead back to."""

from django.conf import settings
from django.urls import reverse


def whole_address(name: str, *arguments: object) -> str:
    """Return the address of a page, by its route's name."""
    return f"{settings.SITE_URL}{reverse(name, args=arguments)}"
