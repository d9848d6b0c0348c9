"""The `x-` headers of complete answers."""

import time
from collections.abc import Sequence

from inference.local_server.service import COMPUTE_TYPE
from inference.local_server.tokens import Ending


def stream_headers(characters: int) -> dict[str, str]:
    """What is known before the first token. `characters` are the input's code points."""
    return {"x-compute-type": COMPUTE_TYPE, "x-compute-characters": str(characters)}


def timing_headers(
    endings: Sequence[Ending], *, characters: int, arrived: float, has_compute_time: bool = True
) -> dict[str, str]:
    """Sums over the answers to one request that arrived at monotonic time `arrived`. Times are in milliseconds."""
    total_seconds = time.monotonic() - arrived
    queue_seconds = sum(ending.queue_seconds for ending in endings)
    inference_seconds = sum(ending.inference_seconds for ending in endings)
    generated_tokens = sum(ending.generated_tokens for ending in endings)
    headers = {
        "x-compute-type": COMPUTE_TYPE,
        "x-compute-characters": str(characters),
        "x-total-time": _milliseconds(total_seconds),
        "x-validation-time": _milliseconds(max(total_seconds - queue_seconds - inference_seconds, 0.0)),
        "x-queue-time": _milliseconds(queue_seconds),
        "x-inference-time": _milliseconds(inference_seconds),
        "x-time-per-token": _milliseconds(inference_seconds / generated_tokens),
        "x-prompt-tokens": str(sum(ending.input_tokens for ending in endings)),
        "x-generated-tokens": str(generated_tokens),
    }
    return headers | ({"x-compute-time": f"{total_seconds:.6f}"} if has_compute_time else {})


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
