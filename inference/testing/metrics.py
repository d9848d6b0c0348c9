"""The text of /metrics."""

from inference.testing.state import TwinState


def exposition(state: TwinState) -> str:
    """Prometheus text with the names of TGI; a gauge that was never set is absent, as there."""
    if state.settings.dialect == "openai":
        return _vllm_exposition(state)
    engine, lines = state.engine, []
    if state.ledger.seen_count:
        lines += [
            "# TYPE tgi_queue_size gauge",
            f"tgi_queue_size {engine.queued_count}",
            "# TYPE tgi_batch_current_size gauge",
            f"tgi_batch_current_size {engine.running_count}",
            "# TYPE tgi_batch_current_max_tokens gauge",
            f"tgi_batch_current_max_tokens {engine.running_count * state.settings.answer_tokens}",
            "# TYPE tgi_request_count counter",
            f"tgi_request_count {state.ledger.seen_count}",
            "# TYPE tgi_request_success counter",
            f"tgi_request_success {engine.finished_count}",
        ]
    if state.failures:
        lines.append("# TYPE tgi_request_failure counter")
    lines += [f'tgi_request_failure{{err="{reason}"}} {count}' for reason, count in sorted(state.failures.items())]
    return "\n".join([*lines, ""])


def huge_exposition(state: TwinState, size: int) -> str:
    """The same, behind so many bytes of histogram as a long-lived server has."""
    row = 'tgi_request_duration_bucket{le="0.00015"} 1\n'
    return "# TYPE tgi_request_duration histogram\n" + row * (size // len(row)) + exposition(state)


def _vllm_exposition(state: TwinState) -> str:
    labels = f'{{engine="0",model_name="{state.settings.model_id}"}}'
    gauges = {"num_requests_waiting": state.engine.queued_count, "num_requests_running": state.engine.running_count}
    return "".join(f"# TYPE vllm:{name} gauge\nvllm:{name}{labels} {value}.0\n" for name, value in gauges.items())
