import json

import pytest

from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.inference.conformance.raw_http import RawResponse, post


@pytest.fixture
async def twin():
    async with running_twin(TwinSettings(token_ms=1, prefill_ms=1, answer_tokens=8, keep_alive_ms=10_000)) as twin:
        yield twin


@pytest.fixture
def say(twin):
    """Asks the twin in a chat stream."""

    async def say(text: str, *, partial: str | None = None, stream: bool = True, **more) -> RawResponse:
        messages = [{"role": "user", "content": text}]
        if partial is not None:
            messages.append({"role": "assistant", "content": partial})
        return await post(twin.url, "/v1/chat/completions", {"messages": messages, "stream": stream, **more})

    return say


def directive(rest: str = "", **wishes) -> str:
    """A user message that begins with a directive."""
    return f"@twin {json.dumps(wishes)}\n{rest}"


def chat_text(response: RawResponse) -> str:
    """What a reader of a chat stream sees."""
    return "".join(
        choice["delta"].get("content") or "" for frame in response.frames() for choice in frame.get("choices", ())
    )
