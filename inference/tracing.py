"""One trace for each message: from the request over the queue to the model servers. Ids and counts, never text.

`chatsite/tracing.py` says where the spans go. Where tracing is not configured there are none.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import redis.asyncio
import structlog
from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from redis import Redis

from foundation.redis import REDIS_UNREACHABLE, key
from inference.tgi.errors import ModelServerError

type Attributes = Mapping[str, AttributeValue]

_tracer = trace.get_tracer("chat.inference")
_across_the_queue = TraceContextTextMapPropagator()
_KEEP_SECONDS = 3600


def carry(client: Redis, generation_ids: Iterable[UUID]) -> None:
    """Leave the present span for whoever claims these generations; nothing where there is none.

    Redis may forget it: then the claim begins a trace of its own.
    """
    carrier: dict[str, str] = {}
    _across_the_queue.inject(carrier)
    if "traceparent" not in carrier:
        return
    pipeline = client.pipeline(transaction=False)
    for generation_id in generation_ids:
        pipeline.set(_key(generation_id), carrier["traceparent"], ex=_KEEP_SECONDS)
    pipeline.execute()


async def carried(client: "redis.asyncio.Redis", generation_id: UUID) -> Context | None:
    """Return where a generation's trace goes on, or `None`. Asks Redis only where tracing is on."""
    if not settings.TRACING:
        return None
    try:
        traceparent: Any = await client.get(_key(generation_id))
    except REDIS_UNREACHABLE:
        return None
    return _across_the_queue.extract({"traceparent": traceparent.decode()}) if traceparent else None


def _key(generation_id: UUID) -> str:
    return key(1, "generation", generation_id, "trace")


def waited(model: str, context: Context | None, since_seconds: float) -> None:
    """Note a wait in the queue that ends now, and began so many seconds after the epoch."""
    if settings.TRACING:
        begun = int(since_seconds * 1e9)
        _tracer.start_span(f"queue {model}", context, SpanKind.CONSUMER, start_time=begun).end()


@contextmanager
def chat(model: str, context: Context | None, attributes: Attributes) -> Iterator[Span]:
    """Make a span for one attempt at an answer the present one, and its trace the log lines', while the block lasts."""
    if not settings.TRACING:
        yield trace.INVALID_SPAN
        return
    told: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat", **attributes}
    with present(_tracer.start_span(f"chat {model}", context, SpanKind.CLIENT, told)) as span:
        yield span


@contextmanager
def one_try(url: str, attributes: Attributes) -> Iterator[Span]:
    """Give a span for one request to one replica.

    It is never the present one: a generator's steps may run in one context and its end in another.
    """
    if not settings.TRACING:
        yield trace.INVALID_SPAN
        return
    parts = urlsplit(url)
    told: dict[str, AttributeValue] = {**attributes, "server.address": parts.hostname or ""}
    told["server.port"] = parts.port or _DEFAULT_PORTS[parts.scheme]
    span = _tracer.start_span("try", kind=SpanKind.CLIENT, attributes=told)
    try:
        yield span
    except ModelServerError as error:
        failed(span, error.code)
        raise
    except (asyncio.CancelledError, GeneratorExit):
        failed(span, "cancelled")
        raise
    finally:
        span.end()


_DEFAULT_PORTS = {"http": 80, "https": 443}


def failed(span: Span, code: str) -> None:
    """Mark what a span tells of as failed; the code is all that is told."""
    span.set_attribute("error.type", code)
    span.set_status(StatusCode.ERROR)


@contextmanager
def present(span: Span) -> Iterator[Span]:
    """Make a span the present one, and its trace the log lines', while the block lasts; then end it."""
    context = span.get_span_context()
    told = {"trace_id": trace.format_trace_id(context.trace_id)} if context.is_valid else {}
    # An exception's message may quote what somebody said: the span gets its type at most.
    with (
        trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False),
        structlog.contextvars.bound_contextvars(**told),
    ):
        yield span
