"""How a request's parameters become the engine's sampling options."""

import secrets
from dataclasses import dataclass

from inference.local_server.bodies import JsonObject
from inference.local_server.local_models import SamplingDefaults
from inference.local_server.parameters import Parameters

_ENGINE_SEEDS = 2**32 - 1  # the last 32-bit value means "random" to the engine


@dataclass(frozen=True, slots=True)
class Sampling:
    """The engine's options and the seed that is reported, `None` when nothing is drawn."""

    options: JsonObject
    seed: int | None


def plan_sampling(parameters: Parameters, defaults: SamplingDefaults) -> Sampling:
    """Greedy unless asked otherwise; what a sampling request leaves open, the model's defaults fill."""
    penalty = parameters.frequency_penalty or 0.0
    if not parameters.is_sampling:
        repetition = parameters.repetition_penalty or 1.0
        return Sampling({"temperature": 0.0, "repeat_penalty": repetition, "frequency_penalty": penalty}, None)
    seed = secrets.randbits(64) if parameters.seed is None else parameters.seed
    options = {
        "temperature": parameters.temperature or defaults.temperature,
        "top_p": parameters.top_p or defaults.top_p,
        "top_k": parameters.top_k or defaults.top_k,
        "typical_p": parameters.typical_p or 1.0,
        "repeat_penalty": parameters.repetition_penalty or defaults.repetition_penalty,
        "frequency_penalty": penalty,
        "min_p": 0.0,
        "seed": seed % _ENGINE_SEEDS,
        "post_sampling_probs": True,
    }
    return Sampling(options, seed)
