"""Tells a person on a page what `chatsite/errors.py` tells a program: a sentence, and the text that was sent."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from chatsite.errors import STATUS_BY_CODE
from foundation.errors import DomainError


class PageErrors(MiddlewareMixin):
    """Middleware: answers a domain error that a page's view raised. The API's views answer theirs themselves."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the error's page, its fragment for a script, or `None` for what is no domain error."""
        if not isinstance(error, DomainError):
            return None
        context = {"error": error, "text": request.POST.get("content", "")}
        response = render(request, _template(request, error), context, status=STATUS_BY_CODE[error.code])
        if error.retry_after_seconds is not None:
            response["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
        return response


def _template(request: HttpRequest, error: DomainError) -> str:
    if "X-Fragment" in request.headers:
        return "conversations/_error.html"
    return "404.html" if error.code == "not_found" and request.method == "GET" else "conversations/error.html"
