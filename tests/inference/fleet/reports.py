"""What workers report of replicas, each in one line."""

from foundation.redis import shared_client
from inference.fleet_reports import write_report


def line_of(url, **fields):
    """Say what a worker tells of a healthy replica, but for `fields`."""
    return {
        "url": url,
        "is_healthy": True,
        "state": "healthy",
        "why": "",
        "model_id": None,
        "model_sha": None,
        "max_total_tokens": None,
        "version": None,
        "in_flight": 0,
        "permits": 4,
        "server_load": 0,
        "tokens_per_second": 0.0,
        "seen_at": 1.0,
    } | fields


def report(url, *, is_healthy=True, **facts):
    """Let a worker that knows no other replica tell of this one."""
    state = "healthy" if is_healthy else "ejected"
    pipeline = shared_client().pipeline(transaction=False)
    write_report(pipeline, f"worker:{url}", [line_of(url, is_healthy=is_healthy, **{"state": state, **facts})])
    pipeline.execute()
