"""What a request body asks for, whichever route it came by, and TGI's rules about its values."""

import json
from dataclasses import dataclass
from typing import Any

from inference.testing.pieces import count_pieces
from inference.testing.rejections import Rejected, invalid
from inference.testing.settings import TwinSettings
from inference.testing.tools import NO_OFFER, Offer, offer_of

_ASSISTANT_TURN = "<|im_start|>assistant\n"
_USER_TURN = "<|im_start|>user\n"
_TURN_END = "<|im_end|>"
_MAX_STOP_SEQUENCES, _MAX_TOP_N_TOKENS, _MAX_BEST_OF, _CHUNK_TOKENS = 4, 5, 2, 1024


@dataclass(frozen=True, slots=True)
class Prompt:
    """The rendered text, the last user message in it, and the part of an answer that is to be continued."""

    text: str
    user: str
    partial: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values of one request, in TGI's own terms; `parameters` are those of /generate."""

    prompt: Prompt
    parameters: dict[str, Any]
    stream: bool
    model: str
    include_usage: bool = False
    counts_continuously: bool = False
    wants_logprobs: bool = False
    offer: Offer = NO_OFFER

    @property
    def samples(self) -> bool:
        """Whether TGI's shards would sample rather than decode greedily."""
        given = self.parameters
        warped = any(given.get(name) is not None for name in ("top_k", "top_p", "typical_p"))
        return bool(given.get("do_sample")) or given.get("temperature") not in (None, 1.0) or warped


def from_generate(body: dict[str, Any], settings: TwinSettings, *, stream: bool) -> Wanted:
    """The wishes of `/`, `/generate` and `/generate_stream`."""
    parameters = body.get("parameters", {"do_sample": True})
    return Wanted(read_prompt(body["inputs"]), parameters, stream, settings.model_id)


def from_chat(body: dict[str, Any], settings: TwinSettings) -> Wanted:
    """The wishes of `/v1/chat/completions`."""
    presence = body.get("presence_penalty")
    temperature = body.get("temperature")
    parameters = {
        "max_new_tokens": body.get("max_tokens", body.get("max_completion_tokens")),
        "do_sample": temperature != 0,
        "temperature": None if temperature == 0 else temperature,
        "top_p": body.get("top_p"),
        "repetition_penalty": None if presence is None else presence + 2.0,
        "frequency_penalty": body.get("frequency_penalty"),
        "stop": body.get("stop") or [],
        "seed": body.get("seed"),
        "top_n_tokens": body.get("top_logprobs"),
        "grammar": body.get("response_format"),
        "details": True,
    }
    model = body.get("model") or "tgi"
    is_tgi = settings.dialect == "tgi"
    options = body.get("stream_options") or {}
    return Wanted(
        render_chat(body["messages"], continues=is_tgi or bool(body.get("continue_final_message")), trims=is_tgi),
        parameters,
        stream=body.get("stream", False),
        model=settings.model_id if model == "tgi" else model,
        include_usage=options.get("include_usage", False),
        counts_continuously=options.get("continuous_usage_stats", False),
        wants_logprobs=bool(body.get("logprobs")),
        offer=offer_of(body),
    )


def from_completion(body: dict[str, Any], settings: TwinSettings) -> list[Wanted]:
    """The wishes of `/v1/completions`, one per prompt."""
    if body.get("suffix") is not None:
        raise Rejected(
            "suffix not supported", "Suffix is not supported and can be achieved by preprocessing the prompt."
        )
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    if len(prompts) > 4:
        raise Rejected("batch size exceeded", f"Number of prompts exceeds the maximum allowed batch size of {4}")
    temperature = body.get("temperature")
    parameters = {
        "max_new_tokens": body.get("max_tokens"),
        "do_sample": temperature != 0,
        "temperature": None if temperature == 0 else temperature,
        "top_p": body.get("top_p"),
        "repetition_penalty": body.get("repetition_penalty"),
        "frequency_penalty": body.get("frequency_penalty"),
        "stop": body.get("stop") or [],
        "seed": body.get("seed"),
        "details": True,
    }
    return [Wanted(read_prompt(text), parameters, body.get("stream", False), settings.model_id) for text in prompts]


def render_chat(messages: list[dict[str, Any]], *, continues: bool = True, trims: bool = True) -> Prompt:
    """The chat template of the twin. A last assistant message is left open to be continued, right-trimmed by TGI."""
    if not messages:
        raise Rejected("template_error", "Template error: undefined value (in chat template)")
    turns = [f"<|im_start|>{message['role']}\n{_content(message)}{_TURN_END}\n" for message in messages]
    users = [_content(message) for message in messages if message["role"] == "user"]
    partial = ""
    if continues and messages[-1]["role"] == "assistant":
        partial = _content(messages[-1]).rstrip() if trims else _content(messages[-1])
        turns[-1] = _ASSISTANT_TURN + partial
    else:
        turns.append(_ASSISTANT_TURN)
    return Prompt("".join(turns), users[-1] if users else "", partial)


def read_prompt(text: str) -> Prompt:
    """A prompt that the client rendered itself; one without turns is all user."""
    _, marker, after = text.rpartition(_USER_TURN)
    if not marker:
        return Prompt(text, text, "")
    user, _, answer = after.partition(_TURN_END)
    return Prompt(text, user, answer.partition(_ASSISTANT_TURN)[2].rstrip())


def validate(wanted: Wanted, settings: TwinSettings) -> int:
    """The number of prompt tokens, or the first of TGI's rules that the request breaks."""
    given = wanted.parameters
    _check_sampling(given, wanted)
    if not wanted.prompt.text:
        raise invalid("`inputs` cannot be empty")
    truncate = given.get("truncate")
    if truncate is not None and not 0 < truncate <= settings.max_input_tokens:
        raise invalid(
            f"`truncate` must be strictly positive and less than {settings.max_input_tokens}. Given: {truncate}"
        )
    n_in = count_pieces(wanted.prompt.text)
    n_in = min(n_in, truncate) if truncate else n_in
    _check_length(n_in, given.get("max_new_tokens"), settings)
    grammar_schema(given.get("grammar"))
    return n_in


def check_streamable(wanted: Wanted) -> None:
    """What a stream cannot give; looked at even before a permit is taken."""
    if (wanted.parameters.get("best_of") or 1) != 1:
        raise invalid("`best_of` != 1 is not supported when streaming tokens")
    if wanted.parameters.get("decoder_input_details"):
        raise invalid("`decoder_input_details` == true is not supported when streaming tokens")


def _check_sampling(given: dict[str, Any], wanted: Wanted) -> None:
    best_of = given.get("best_of") or 1
    rules = (
        (best_of > 1 and not wanted.samples, "you must use sampling when `best_of` is > 1"),
        (_is_at_most(given.get("temperature"), 0), "`temperature` must be strictly positive"),
        (_is_at_most(given.get("repetition_penalty"), 0), "`repetition_penalty` must be strictly positive"),
        (not -2 <= (given.get("frequency_penalty") or 0) <= 2, "`frequency_penalty` must be between -2.0 and 2.0"),
        (_is_outside_unit(given.get("top_p")), "`top_p` must be > 0.0 and < 1.0"),
        (_is_outside_unit(given.get("typical_p")), "`typical_p` must be > 0.0 and < 1.0"),
        (_is_at_most(given.get("top_k"), 0), "`top_k` must be strictly positive"),
        (given.get("max_new_tokens") == 0, "`max_new_tokens` must be strictly positive"),
        (
            len(given.get("stop") or []) > _MAX_STOP_SEQUENCES,
            f"`stop` supports up to {_MAX_STOP_SEQUENCES} stop sequences. Given: {len(given.get('stop') or [])}",
        ),
        (best_of > 1 and given.get("seed") is not None, "`seed` must not be set when `best_of` > 1"),
        (
            (given.get("top_n_tokens") or 0) > _MAX_TOP_N_TOKENS,
            f"`top_n_tokens` must be >= 0 and <= {_MAX_TOP_N_TOKENS}. Given: {given.get('top_n_tokens')}",
        ),
        (best_of > _MAX_BEST_OF, f"`best_of` must be >= 1 and <= {_MAX_BEST_OF}. Given: {best_of}"),
    )
    for is_broken, text in rules:
        if is_broken:
            raise invalid(text)


def _check_length(n_in: int, max_new_tokens: int | None, settings: TwinSettings) -> None:
    asked = settings.max_total_tokens - n_in if max_new_tokens is None else max_new_tokens
    chunk = max(min(asked, _CHUNK_TOKENS), 0)
    if n_in + chunk > settings.max_total_tokens:
        raise invalid(
            f"`inputs` tokens + `max_new_tokens` must be <= {settings.max_total_tokens}. "
            f"Given: {n_in} `inputs` tokens and {chunk} `max_new_tokens`"
        )
    if n_in > settings.max_input_tokens:
        raise invalid(f"`inputs` must have less than {settings.max_input_tokens} tokens. Given: {n_in}")


def grammar_schema(grammar: dict[str, Any] | None) -> dict[str, Any] | None:
    """The JSON schema of a grammar; None for a regex or none at all."""
    if grammar is None or grammar["type"] == "regex":
        return None
    schema = grammar["value"]["schema"] if grammar["type"] == "json_schema" else grammar["value"]
    try:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
    except json.JSONDecodeError as error:
        raise invalid("Invalid grammar") from error
    if not isinstance(parsed, dict) or "properties" not in parsed:
        raise invalid("Grammar must have a 'properties' field")
    return parsed


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text") or f"![]({part['image_url']['url']})" for part in content)
    return content if isinstance(content, str) else json.dumps(message["tool_calls"])


def _is_at_most(value: float | None, bound: float) -> bool:
    return value is not None and value <= bound


def _is_outside_unit(value: float | None) -> bool:
    return value is not None and not 0 < value < 1
