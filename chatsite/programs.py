"""The short way through Django, for requests that carry their own credential and for probes.

A session, its CSRF token, messages and a language belong to a browser, and `accounts.authentication` never looks at a
session where there is a bearer credential. So what prepares one is left out, and only the view itself needs a thread.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

from chatsite.request_bodies import Application, Receive, Send
from foundation.database import in_request_thread, keep_threads

_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


class ProgramHandler(ASGIHandler):
    """Django's handler with `PROGRAM_MIDDLEWARE`, which takes every step on the event loop."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Without a thread of the request's own, which would be started and ended for each.
        keep_threads()
        await self.handle(scope, receive, send)

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        handler = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]
        for name in reversed(settings.PROGRAM_MIDDLEWARE):
            middleware = import_string(name)(handler)
            if hasattr(middleware, "process_exception"):
                self._exception_middleware.append(middleware.process_exception)
            handler = convert_exception_to_response(middleware)
        self._middleware_chain = handler

    def make_view_atomic(self, view: Callable[..., Any]) -> Callable[..., Any]:
        atomic: Callable[..., Any] = super().make_view_atomic(view)
        return atomic if iscoroutinefunction(atomic) else _in_a_kept_thread(atomic)


def _in_a_kept_thread(view: Callable[..., HttpResponseBase]) -> Callable[..., Awaitable[HttpResponseBase]]:
    @wraps(view)
    async def asynchronous(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return await in_request_thread(view, request, *args, **kwargs)

    return asynchronous


def by_caller(*, programs: Application, pages: Application) -> Application:
    """Return the application that gives each request to the handler for its kind."""

    async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await (programs if is_of_a_program(scope) else pages)(scope, receive, send)

    return application


def is_of_a_program(scope: Mapping[str, Any]) -> bool:
    """Say whether a request asks the API with a bearer credential, or how the site is."""
    path: str = scope["path"]
    if path in _PROBES:
        return True
    return path.startswith("/v1/") and _scheme(scope) == b"bearer"


def _scheme(scope: Mapping[str, Any]) -> bytes:
    # The first one: where there are several, `accounts.authentication` sees them joined in this order.
    first = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    return bytes(first.partition(b" ")[0].lower())
