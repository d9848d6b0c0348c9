"""The bodies and headers of answers that are one document."""

import json
import time
from typing import Any

from inference.testing.answers import Answer
from inference.testing.chat_frames import chat_reason
from inference.testing.frames import LOGPROB, fingerprint, generate_reason, seed_of, tokens_of, usage_of
from inference.testing.pieces import EOS_ID, piece_id, spans
from inference.testing.plans import Plan
from inference.testing.rejections import Rejected
from inference.testing.requests import Wanted
from inference.testing.settings import TwinSettings


def generated(plan: Plan) -> dict[str, Any]:
    """The object of /generate."""
    parameters = plan.wanted.parameters
    before = plan.wanted.prompt.text if parameters.get("return_full_text") else ""
    body: dict[str, Any] = {"generated_text": before + plan.answer.text}
    if parameters.get("details") or parameters.get("decoder_input_details"):
        body["details"] = _details(plan)
    return body


def chat_completion(settings: TwinSettings, plan: Plan) -> dict[str, Any]:
    """The object of /v1/chat/completions."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **_content(plan)},
        "logprobs": _logprobs(plan.answer) if plan.wanted.wants_logprobs else None,
        "finish_reason": chat_reason(plan.answer.finish, settings),
    }
    return _completion("chat.completion", settings, plan.wanted.model, [choice], usage_of(plan))


def text_completion(settings: TwinSettings, plans: list[Plan]) -> dict[str, Any]:
    """The object of /v1/completions."""
    choices = [
        {"index": plan.index, "text": plan.answer.text, "logprobs": None, "finish_reason": plan.answer.finish}
        for plan in plans
    ]
    return _completion("text_completion", settings, settings.model_id, choices, usage_of(*plans))


def prompt_tokens(text: str) -> list[dict[str, Any]]:
    """The array of /tokenize; offsets are bytes."""
    return [{"id": piece_id(piece), "text": piece, "start": start, "stop": stop} for piece, start, stop in spans(text)]


def facts(settings: TwinSettings) -> dict[str, Any]:
    """/info."""
    limit_key = "max_input_tokens" if settings.version >= (2, 2) else "max_input_length"
    body: dict[str, Any] = {"model_id": settings.model_id, "model_sha": None, "model_pipeline_tag": "text-generation"}
    if settings.version < (2, 3):
        body |= {"model_dtype": "torch.float16", "model_device_type": "cuda", "max_batch_total_tokens": 100_000}
        body |= {"waiting_served_ratio": 0.3, "max_waiting_tokens": 20}
    return body | {
        "max_concurrent_requests": settings.permits,
        "max_best_of": 2,
        "max_stop_sequences": 4,
        limit_key: settings.max_input_tokens,
        "max_total_tokens": settings.max_total_tokens,
        "validation_workers": 2,
        "max_client_batch_size": 4,
        "router": "text-generation-router",
        "version": settings.tgi_version,
        "sha": None,
        "docker_label": None,
    }


def timing_headers(plans: list[Plan], seconds: float) -> dict[str, str]:
    """The ten headers of an answer that is one document."""
    tokens_out = sum(plan.answer.token_count for plan in plans)
    total_ms = round(seconds * 1000)
    return compute_headers([plan.wanted for plan in plans]) | {
        "x-compute-time": f"{seconds:.6f}",
        "x-total-time": str(total_ms),
        "x-validation-time": "0",
        "x-queue-time": "0",
        "x-inference-time": str(total_ms),
        "x-time-per-token": str(round(total_ms / max(tokens_out, 1))),
        "x-prompt-tokens": str(sum(plan.input_length for plan in plans)),
        "x-generated-tokens": str(tokens_out),
    }


def compute_headers(wanted: list[Wanted]) -> dict[str, str]:
    """The two that streams have too."""
    characters = sum(len(one.prompt.text) for one in wanted)
    return {"x-compute-type": "gpu+optimized", "x-compute-characters": str(characters)}


def as_bytes(body: object) -> bytes:
    """Compact JSON; escaped, since a lone surrogate has no UTF-8."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def _content(plan: Plan) -> dict[str, Any]:
    call = plan.tool_call
    if call is None:
        return {"content": plan.answer.text}
    if plan.answer.finish == "length":
        raise Rejected("tool_error", "Tool error: Error while parsing a tool call: EOF while parsing an object")
    function = {"description": None, "name": call.name, "arguments": plan.answer.text}
    return {"tool_calls": [{"id": call.call_id, "type": "function", "function": function}]}


def _details(plan: Plan) -> dict[str, Any]:
    tokens = [
        {
            "id": EOS_ID if token.is_special else piece_id(token.text),
            "text": token.text,
            "logprob": LOGPROB,
            "special": token.is_special,
        }
        for token in tokens_of(plan.answer)
    ]
    return {
        "finish_reason": generate_reason(plan.answer.finish),
        "generated_tokens": plan.answer.token_count,
        "seed": seed_of(plan.wanted),
        "prefill": [],
        "tokens": tokens,
    }


def _logprobs(answer: Answer) -> dict[str, Any]:
    return {
        "content": [{"token": token.text, "logprob": LOGPROB, "top_logprobs": []} for token in tokens_of(answer)],
    }


def _completion(
    kind: str,
    settings: TwinSettings,
    model: str,
    choices: list[dict[str, Any]],
    usage: dict[str, object],
) -> dict[str, Any]:
    return {
        "object": kind,
        "id": "",
        "created": int(time.time()),
        "model": model,
        "system_fingerprint": fingerprint(settings),
        "choices": choices,
        "usage": usage,
    }
