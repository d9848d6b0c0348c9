"""What a trace tells of each try at a replica."""

from contextlib import aclosing

import pytest
from django.test import override_settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from foundation.redis import connect, connect_async
from inference import tracing
from inference.metrics import replica_label
from tests.inference.core.jobs import make_job
from tests.inference.fleet.replicas import chosen_of, prompt, replicas

_finished = InMemorySpanExporter()


@pytest.fixture(scope="module")
def _provider():
    # A process has one for good; where `TRACING` is off nothing is given to it.
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_finished))
    trace.set_tracer_provider(provider)


@pytest.fixture
async def client():
    async with connect_async() as client:
        yield client


@pytest.fixture
def finished(_provider):
    """The spans that ended."""
    _finished.clear()
    with override_settings(TRACING=True):
        yield _finished.get_finished_spans


async def test_each_try_has_a_span_and_the_one_that_failed_says_why(finished, tmp_path):
    asked = prompt({"kind": "cut", "how": "rst", "after": 20}, tokens=60)
    async with replicas(2, tmp_path) as fleet:
        with tracing.chat("small", None, {}) as span:
            first, second = chosen_of(await fleet.answer(asked))
    failed, good, whole = finished()
    assert whole.context == span.get_span_context()
    assert failed.parent == good.parent == whole.context
    assert [each.attributes.get("error.type") for each in (failed, good)] == ["incomplete", None]
    assert [each.attributes["chat.is_resumed"] for each in (failed, good)] == [False, True]
    assert [f"{each.attributes['server.address']}:{each.attributes['server.port']}" for each in (failed, good)] == [
        replica_label(each.replica.url) for each in (first, second)
    ]
    assert not [event for each in finished() for event in each.events], "an exception's message may quote somebody"


async def test_a_try_that_is_given_up_is_told_as_cancelled(finished):
    async def pieces():
        with tracing.one_try("http://10.0.0.7:8101", {}):
            yield "one"
            yield "two"

    async with aclosing(pieces()) as answer:
        await anext(answer)
    (span,) = finished()
    assert span.attributes["error.type"] == "cancelled"


async def test_a_trace_goes_on_where_the_job_is_claimed(finished, client):
    job = make_job()
    with tracing.chat("small", None, {}) as asked, connect() as store:
        tracing.carry(store, [job.generation_id])
    context = await tracing.carried(client, job.generation_id)
    with tracing.chat("small", context, {}) as answered:
        assert answered.get_span_context().trace_id == asked.get_span_context().trace_id
    assert await tracing.carried(client, make_job().generation_id) is None


async def test_without_tracing_nothing_is_carried(client):
    job = make_job()
    with tracing.chat("small", None, {}), connect() as store:
        tracing.carry(store, [job.generation_id])
    with override_settings(TRACING=True):
        assert await tracing.carried(client, job.generation_id) is None
