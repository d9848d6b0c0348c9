"""A collector of traces, as small as one can be: OTLP over HTTP, kept in memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """What was received, as it came."""

    url: str
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Span]:
        return [
            span
            for body in list(self.bodies)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def trace_with(self, name: str) -> list[Span]:
        """Return all spans of the trace in which one has this name; none where there is no such trace."""
        spans = self.spans()
        traces = {span.trace_id for span in spans if span.name == name}
        return [span for span in spans if span.trace_id in traces]


def attributes(span: Span) -> dict[str, object]:
    return {each.key: _value(each.value) for each in span.attributes}


def _value(value) -> object:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def running_collector() -> Iterator[Collector]:
    """A collector for as long as the block lasts."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
