"""Traces, as a collector receives them from the running product."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from tests.accounts.factories import make_key, make_user
from tests.api_client import text_of
from tests.chatsite.asking import ask
from tests.chatsite.collector import attributes, running_collector
from tests.running_site import ROOT, running_site, wait_until

SENT = "POST /v1/conversations/<uuid:conversation_id>/messages"
pytestmark = pytest.mark.timeout(400)

FAST = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


@pytest.fixture
def secret(transactional_db):
    return make_key(make_user("alice@example.com", tier="enterprise"))


def test_one_trace_shows_a_message_on_its_way_and_none_of_its_words(secret, tmp_path):
    log = tmp_path / "log"
    with running_collector() as collector:
        with running_site(log=log, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, LOG_JSON="true", **FAST) as site:
            question = '@twin {"text": "Confidential answer."}\nConfidential question'
            events = ask(site.url, secret, question, options={"temperature": 0.5, "stop": ["Secret"]})
            wait_until(lambda: len(collector.trace_with(SENT)) >= 4, 60, "the trace")
            replica = site.twin.url
        spans = {span.name: span for span in collector.trace_with(SENT)}

    assert set(spans) == {SENT, "queue small", "chat small", "try"}
    sent, chat, tried = spans[SENT], spans["chat small"], spans["try"]
    assert not sent.parent_span_id
    assert {spans["queue small"].parent_span_id, chat.parent_span_id} == {sent.span_id}
    assert tried.parent_span_id == chat.span_id
    assert attributes(sent)["http.response.status_code"] == 200

    done = events[-1].data
    told = attributes(chat)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.request.model"] == "small"
    assert told["gen_ai.request.temperature"] == 0.5
    assert told["chat.generation.id"] == done["message_id"]
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert told["gen_ai.usage.input_tokens"] == done["usage"]["in"]
    assert told["gen_ai.usage.output_tokens"] == done["usage"]["out"] > 0

    address = attributes(tried)
    assert f"http://{address['server.address']}:{address['server.port']}" == replica

    everything = b"".join(collector.bodies)
    assert not [word for word in (b"Confidential", b"Secret", secret.encode()) if word in everything]
    assert trace_of_the_claim(log) == chat.trace_id.hex()


def trace_of_the_claim(log) -> str:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return next(line["trace_id"] for line in lines if line.get("event") == "reply_ended")


def test_a_collector_that_accepts_and_never_answers_holds_up_neither_answer_nor_end(secret):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
        with running_site(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, **FAST) as site:
            for _ in range(3):
                events = ask(site.url, secret, '@twin {"text": "Whole."}\nHi')
                assert text_of(events) == "Whole."
            began = time.monotonic()
            site.stop_workers()
            assert time.monotonic() - began < 20  # the exporter alone would hold it up for half a minute


LOADED = """
import sys
import django
django.setup()
print([name for name in ("opentelemetry.sdk.trace", "opentelemetry.exporter") if name in sys.modules])
"""


def test_nothing_that_traces_is_loaded_unless_a_collector_is_named():
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": ""}
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
