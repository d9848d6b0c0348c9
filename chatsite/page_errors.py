"""Tells a person on a page what `chatsite/errors.py` tells a program: a sentence, and the text that was sent."""

import structlog
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from accounts.limits_told import refusal_told
from chatsite.errors import STATUS_BY_CODE, retry_after
from conversations.exceptions import Overloaded
from foundation.database import DATABASE_UNREACHABLE
from foundation.errors import DomainError

log = structlog.get_logger(__name__)


class PageErrors(MiddlewareMixin):
    """Middleware: answers an error that a page's view raised. The API's views answer theirs themselves."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the error's page, its fragment for a script, or `None` for what is a fault of this program."""
        if isinstance(error, DATABASE_UNREACHABLE):
            log.error("database_unreachable", error=type(error).__name__)
            error = Overloaded("Nothing can be stored right now. Try again in a moment.", retry_after_seconds=2)
        if not isinstance(error, DomainError):
            return None
        # Without the request: what a context processor would read lies in the database, which may be what is away.
        told = refusal_told(error, getattr(request, "user", None))
        context = {"error": error, "told": told, "text": request.POST.get("content", "")}
        body = render_to_string(_template(request, error), context)
        return HttpResponse(body, status=STATUS_BY_CODE[error.code], headers=retry_after(error))


def _template(request: HttpRequest, error: DomainError) -> str:
    if "X-Fragment" in request.headers:
        return "conversations/_error.html"
    return "404.html" if error.code == "not_found" and request.method == "GET" else "conversations/error.html"
