"""The watch on the event loop."""

import time

from prometheus_client import REGISTRY

from foundation.event_loop import watched
from tests.inference.core.waiting import until


def late_by_at_most(seconds: str) -> float:
    labels = {"process": "tested", "le": seconds}
    return REGISTRY.get_sample_value("chat_event_loop_lag_seconds_bucket", labels) or 0


def watched_so_far() -> float:
    return late_by_at_most("+Inf")


async def test_work_that_blocks_the_loop_is_seen_as_its_lag():
    async with watched("tested"):
        await until(watched_so_far)
        punctual, so_far = late_by_at_most("0.25"), watched_so_far()
        busy_until = time.monotonic() + 0.5
        while time.monotonic() < busy_until:
            pass
        await until(lambda: watched_so_far() > so_far)
    assert late_by_at_most("0.25") - punctual < watched_so_far() - so_far
