"""How the numbers of this machine's processes are told: as text, or by a small server of a process's own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import prometheus_client
import structlog
from django.conf import settings
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector

log = structlog.get_logger(__name__)

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


def exposition() -> bytes:
    """Return this process's numbers; where processes share `METRICS_DIRECTORY`, those of all of them."""
    return prometheus_client.generate_latest(_registry())


@contextmanager
def served(host: str, port: int) -> Iterator[None]:
    """Answer the numbers at a port while the block lasts; port 0 means not at all.

    A port that cannot be had is logged and gone without: answers matter more than their numbers.
    """
    if not port:
        yield
        return
    try:
        server, thread = prometheus_client.start_http_server(port, addr=host, registry=_registry())
    except OSError as error:
        log.warning("metrics_not_served", host=host, port=port, error=str(error))
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _registry() -> CollectorRegistry:
    if not settings.METRICS_DIRECTORY:
        return prometheus_client.REGISTRY
    registry = CollectorRegistry()
    _SharedNumbers(registry, path=settings.METRICS_DIRECTORY)  # type: ignore[no-untyped-call]
    return registry


class _SharedNumbers(MultiProcessCollector):
    """Passes over a file that a process has made and not yet written to, or was killed before it could."""

    def collect(self) -> Iterable[Metric]:
        files = [str(each) for each in Path(settings.METRICS_DIRECTORY).glob("*.db") if _is_written(each)]
        merged: Iterable[Metric] = self.merge(files)  # type: ignore[no-untyped-call]
        return merged


def _is_written(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False  # its process has just ended
