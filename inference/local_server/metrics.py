"""The server's metrics in Prometheus' text format, under TGI's names."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from inference.local_server.errors import RequestError
from inference.local_server.load import Load
from inference.local_server.tokens import Ending

_SECONDS_BUCKETS = tuple(0.00015 * 1.5**power for power in range(35))
_TOKEN_BUCKETS = tuple(float(41 * step) for step in range(1, 101))


class Histogram:
    """Counts of observations at or below each bucket's bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        yield f"# TYPE {name} histogram"
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            label = "+Inf" if bound == float("inf") else repr(bound)
            yield f'{name}_bucket{{le="{label}"}} {below}'
        yield f"{name}_sum {self._sum}"
        yield f"{name}_count {below}"


class Metrics:
    """What happened since the start. The gauges are read from the load at each scrape."""

    def __init__(self) -> None:
        self._requests = 0
        self._successes = 0
        self._failures: dict[str, int] = defaultdict(int)
        self._histograms = {
            "tgi_request_duration": Histogram(_SECONDS_BUCKETS),
            "tgi_request_queue_duration": Histogram(_SECONDS_BUCKETS),
            "tgi_request_inference_duration": Histogram(_SECONDS_BUCKETS),
            "tgi_request_mean_time_per_token_duration": Histogram(_SECONDS_BUCKETS),
            "tgi_request_input_length": Histogram(_TOKEN_BUCKETS),
            "tgi_request_generated_tokens": Histogram(_TOKEN_BUCKETS),
        }

    @contextmanager
    def request(self) -> Iterator[None]:
        """Counts one request and how it went; one that is abandoned before its end is `dropped`."""
        self._requests += 1
        failure = "dropped"
        try:
            yield
            failure = ""
        except RequestError as error:
            failure = error.failure_label
            raise
        finally:
            if failure:
                self._failures[failure] += 1
            else:
                self._successes += 1

    def finished(self, ending: Ending) -> None:
        """Takes down one complete answer."""
        observed = {
            "tgi_request_duration": ending.queue_seconds + ending.inference_seconds,
            "tgi_request_queue_duration": ending.queue_seconds,
            "tgi_request_inference_duration": ending.inference_seconds,
            "tgi_request_mean_time_per_token_duration": ending.inference_seconds / ending.generated_tokens,
            "tgi_request_input_length": ending.input_tokens,
            "tgi_request_generated_tokens": ending.generated_tokens,
        }
        for name, value in observed.items():
            self._histograms[name].observe(value)

    def render(self, load: Load) -> str:
        """The whole page."""
        return "\n".join(self._lines(load)) + "\n"

    def _lines(self, load: Load) -> Iterator[str]:
        yield from _series("tgi_queue_size", "gauge", load.waiting)
        yield from _series("tgi_batch_current_size", "gauge", load.running)
        yield from _series("tgi_batch_current_max_tokens", "gauge", load.reserved_tokens)
        yield from _series("tgi_request_count", "counter", self._requests)
        yield from _series("tgi_request_success", "counter", self._successes)
        yield "# TYPE tgi_request_failure counter"
        for label, count in sorted(self._failures.items()):
            yield f'tgi_request_failure{{err="{label}"}} {count}'
        for name, histogram in self._histograms.items():
            yield from histogram.lines(name)


def _series(name: str, kind: str, value: int) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    yield f"{name} {value}"
