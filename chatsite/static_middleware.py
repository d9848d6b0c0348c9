"""Serves static files by WhiteNoise without making the rest of the middleware chain synchronous."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction, markcoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise is untyped
    """WhiteNoise's own class is synchronous only, and so Django would run every view behind it in a thread."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if iscoroutinefunction(self):
            return self._answer(request)
        answer: HttpResponseBase = self._static(request) or self.get_response(request)
        return answer

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        answer: HttpResponseBase | None = None
        if request.path_info.startswith(self.static_prefix):
            answer = await sync_to_async(self._static)(request)
        if answer is None:
            answer = await self.get_response(request)
        return answer

    def _static(self, request: HttpRequest) -> HttpResponse | None:
        """Return the file whole: they are small, and a file iterator would block the event loop."""
        if not request.path_info.startswith(self.static_prefix):
            return None
        found = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if found is None:
            return None
        served = found.get_response(request.method, request.META)
        body = b""
        if served.file is not None:
            with served.file:
                body = served.file.read()
        return HttpResponse(body, status=int(served.status), headers=dict(served.headers))
