"""Traces of what the product does, sent to an OpenTelemetry collector; loaded only where one is configured."""

import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind

from inference.tracing import failed, present

LAST_FLUSH_SECONDS = 2.0
_UNTRACED = ("/healthz", "/readyz", "/metrics", settings.STATIC_URL)

_tracer = trace.get_tracer("chat.web")


class TracingConfig(AppConfig):
    """Begins to trace when the process starts; the standard `OTEL_*` variables say where to, and how much."""

    name = "chatsite.tracing"
    label = "tracing"

    def ready(self) -> None:
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        _LastFlush(provider)


def _resource() -> Resource:
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "chat")}  # the SDK's own default is `unknown_service`
    return Resource.create({**named, "process.pid": os.getpid()})


class _LastFlush:
    """Sends what is left when the process ends, for a moment at most: a collector that is away keeps nobody.

    The SDK's own would wait half a minute, and at the end of a process no thread can be started any more.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._wanted, self._done = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="last flush of traces", daemon=True).start()
        atexit.register(self._flush)

    def _flush(self) -> None:
        self._wanted.set()
        self._done.wait(LAST_FLUSH_SECONDS)

    def _run(self) -> None:
        self._wanted.wait()
        self._provider.shutdown()
        self._done.set()


@sync_and_async_middleware
def trace_requests(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Trace each request until its answer begins: how long a stream then lasts, the answer's own span tells.

    A trace that a client says it belongs to is not taken up: outsiders have no say in what is recorded.
    """
    if iscoroutinefunction(get_response):
        answer: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            if request.path.startswith(_UNTRACED):
                return await answer(request)
            with present(_span_of(request)) as span:
                return _told(span, request, await answer(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> Any:
        if request.path.startswith(_UNTRACED):
            return get_response(request)
        with present(_span_of(request)) as span:
            return _told(span, request, get_response(request))

    return synchronous


def _span_of(request: HttpRequest) -> Span:
    method = request.method or ""
    return _tracer.start_span(method, kind=SpanKind.SERVER, attributes={"http.request.method": method})


def _told(span: Span, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if request.resolver_match is not None:
        route = f"/{request.resolver_match.route}"
        span.update_name(f"{request.method} {route}")
        span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", response.status_code)
    if response.status_code >= 500:
        failed(span, str(response.status_code))
    return response
