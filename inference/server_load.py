"""What a model server's `/metrics` say about its load."""

import re
from dataclasses import dataclass

_RUNNING = (
    "tgi_batch_current_size",
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
)
_WAITING = (
    "tgi_queue_size",
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
)


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Requests at a server, whoever sent them."""

    running: int
    waiting: int

    @property
    def total(self) -> int:
        return self.running + self.waiting


def parse_load(exposition: bytes) -> ServerLoad | None:
    """Read the few gauges that matter, summed over their labels; `None` where there is none of them.

    A scrape is a hundred kilobytes of histograms, so it is searched, not parsed.
    """
    running, waiting = _sum(_RUNNING_LINE, exposition), _sum(_WAITING_LINE, exposition)
    if running is None and waiting is None:
        return None
    return ServerLoad(running or 0, waiting or 0)


def _line_of(names: tuple[str, ...]) -> re.Pattern[bytes]:
    words = "|".join(map(re.escape, names))
    return re.compile(rf"^(?:{words})(?:\{{[^\n]*\}})?[ \t]+([0-9.]{{1,18}}(?:[eE][+-]?[0-9]{{1,2}})?)".encode(), re.M)


_RUNNING_LINE, _WAITING_LINE = _line_of(_RUNNING), _line_of(_WAITING)


def _sum(line: re.Pattern[bytes], exposition: bytes) -> int | None:
    values = []
    for found in line.findall(exposition):
        try:
            values.append(float(found))
        except ValueError:
            continue
    return int(sum(values)) if values else None
