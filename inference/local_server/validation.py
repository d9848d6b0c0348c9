"""Judges the values of a request by TGI's rules, in TGI's order, with TGI's texts."""

from collections.abc import Iterator
from dataclasses import dataclass

from inference.local_server.errors import InvalidInputError
from inference.local_server.parameters import Parameters

CHUNK_TOKENS = 1024
"""TGI plans at most so many new tokens at once, and checks only these against the window."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server accepts. Token counts are those of one request."""

    max_total_tokens: int
    max_concurrent_requests: int
    max_input_tokens: int
    max_best_of: int = 2
    max_stop_sequences: int = 4
    max_top_n_tokens: int = 5
    max_client_batch_size: int = 4
    payload_limit_bytes: int = 2_000_000


def check_parameters(inputs: str, parameters: Parameters, limits: Limits) -> None:
    """Everything that can be judged before the prompt is tokenized. Raises `InvalidInputError`."""
    for is_broken, text in (*_sampling_rules(parameters), *_size_rules(inputs, parameters, limits)):
        if is_broken:
            raise InvalidInputError(text)


def _sampling_rules(parameters: Parameters) -> Iterator[tuple[bool, str]]:
    several = (parameters.best_of or 1) > 1
    yield several and not _chooses_sampling(parameters), "you must use sampling when `best_of` is > 1"
    yield not _positive(parameters.temperature), "`temperature` must be strictly positive"
    yield not _positive(parameters.repetition_penalty), "`repetition_penalty` must be strictly positive"
    yield not -2.0 <= (parameters.frequency_penalty or 0.0) <= 2.0, "`frequency_penalty` must be >= -2.0 and <= 2.0"
    yield not _inside_unit(parameters.top_p), "`top_p` must be > 0.0 and < 1.0"
    yield not _inside_unit(parameters.typical_p), "`typical_p` must be > 0.0 and < 1.0"
    yield not _positive(parameters.top_k), "`top_k` must be strictly positive"


def _size_rules(inputs: str, parameters: Parameters, limits: Limits) -> Iterator[tuple[bool, str]]:
    stops, alternatives, kept = len(parameters.stop), parameters.top_n_tokens or 0, parameters.truncate
    yield parameters.max_new_tokens == 0, "`max_new_tokens` must be strictly positive"
    yield (
        stops > limits.max_stop_sequences,
        f"`stop` supports up to {limits.max_stop_sequences} stop sequences. Given: {stops}",
    )
    yield (
        (parameters.best_of or 1) > 1 and parameters.seed is not None,
        "`seed` must not be set when `best_of` > 1",
    )
    yield (
        alternatives > limits.max_top_n_tokens,
        f"`top_n_tokens` must be >= 0 and <= {limits.max_top_n_tokens}. Given: {alternatives}",
    )
    yield not inputs, "`inputs` cannot be empty"
    yield (
        kept is not None and not 0 < kept <= limits.max_input_tokens,
        f"`truncate` must be strictly positive and less than {limits.max_input_tokens}. Given: {kept}",
    )


def check_lengths(input_tokens: int, max_new_tokens: int | None, limits: Limits) -> int:
    """Returns how many tokens may be written. Raises `InvalidInputError` where the prompt leaves no room."""
    room = max(limits.max_total_tokens - input_tokens, 0)
    planned = min(room if max_new_tokens is None else max_new_tokens, CHUNK_TOKENS)
    if input_tokens + planned > limits.max_total_tokens:
        raise InvalidInputError(
            f"`inputs` tokens + `max_new_tokens` must be <= {limits.max_total_tokens}. "
            f"Given: {input_tokens} `inputs` tokens and {planned} `max_new_tokens`"
        )
    if input_tokens > limits.max_input_tokens:
        raise InvalidInputError(f"`inputs` must have less than {limits.max_input_tokens} tokens. Given: {input_tokens}")
    return min(room if max_new_tokens is None else max_new_tokens, room)


def check_best_of(best_of: int, limits: Limits) -> None:
    if best_of > limits.max_best_of:
        raise InvalidInputError(f"`best_of` must be > 0 and <= {limits.max_best_of}. Given: {best_of}")


def check_streamable(parameters: Parameters) -> None:
    """What a stream cannot do; tested before a permit is taken."""
    if parameters.best_of not in (None, 1):
        raise InvalidInputError("`best_of` != 1 is not supported when streaming tokens")
    if parameters.decoder_input_details:
        raise InvalidInputError("`decoder_input_details` == true is not supported when streaming tokens")


def _chooses_sampling(parameters: Parameters) -> bool:
    chosen = (parameters.temperature, parameters.top_k, parameters.top_p, parameters.typical_p)
    return parameters.do_sample or any(value is not None for value in chosen)


def _positive(value: float | None) -> bool:
    return value is None or value > 0


def _inside_unit(value: float | None) -> bool:
    return value is None or 0.0 < value < 1.0
