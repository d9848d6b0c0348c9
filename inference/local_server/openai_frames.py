"""What the two OpenAI-style routes have in common."""

from inference.local_server.bodies import JsonObject
from inference.local_server.errors import RequestError
from inference.local_server.frames import event
from inference.local_server.tokens import Ending


def error_event(error: RequestError) -> bytes:
    """An error within a stream; TGI says 422 whatever the cause."""
    return event({"error": {"message": error.stream_text, "http_status_code": 422}})


def usage_value(*endings: Ending) -> JsonObject:
    """Token counts. TGI does not tell what its cache saved; this server does, where OpenAI's clients look for it."""
    prompt_tokens = sum(ending.input_tokens for ending in endings)
    completion_tokens = sum(ending.generated_tokens for ending in endings)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(ending.cached_tokens for ending in endings)},
    }
