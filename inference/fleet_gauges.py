"""What the replicas and the queue are like at present, as each worker sees it, for those who watch."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import redis.asyncio
import structlog
from prometheus_client import Gauge

from foundation.redis import REDIS_UNREACHABLE
from inference import metrics, queue
from inference.fleet import Fleet
from inference.metrics import replica_label
from inference.permits import Permits

log = structlog.get_logger(__name__)

TELL_SECONDS = 5.0

type _Labels = tuple[str, ...]


@dataclass(slots=True)
class FleetGauges:
    """Sets the gauges anew at every `tell`. What is no more, a replica or a model, is told as 0 from then on."""

    client: "redis.asyncio.Redis"
    fleet: Fleet
    permits: Permits
    _told: dict[Gauge, set[_Labels]] = field(default_factory=dict)

    async def tell(self) -> None:
        """Look at everything once."""
        self._tell_of_replicas()
        try:
            lengths = await queue.lengths(self.client, [model.alias for model in self.fleet.catalog.models])
        except REDIS_UNREACHABLE as error:
            log.warning("queue_not_measured", error=type(error).__name__)
            return
        self._set(metrics.QUEUE_LENGTH, lengths)

    def _tell_of_replicas(self) -> None:
        now = asyncio.get_running_loop().time()
        self._set(metrics.PERMITS_HELD, {(replica_label(url),): self.permits.held(url) for url in self.fleet.states})
        capacity = {(replica_label(url),): state.permits_now(now) for url, state in self.fleet.states.items()}
        self._set(metrics.PERMITS_CAPACITY, capacity)
        states = Counter(
            (model.alias, state.reported_state(now))
            for model in self.fleet.catalog.models
            for state in self.fleet.of(model)
        )
        self._set(metrics.REPLICAS, states)

    def _set[L: _Labels](self, gauge: Gauge, values: Mapping[L, float]) -> None:
        # A series of a shared directory cannot be taken away.
        before = self._told.setdefault(gauge, set())
        for labels in before - values.keys():
            gauge.labels(*labels).set(0)
        for labels, value in values.items():
            gauge.labels(*labels).set(value)
        before.update(values)
