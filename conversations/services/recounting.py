"""Has model servers count what none of them reported: what was read and decoded for an answer that was cut off."""

import asyncio
from collections.abc import Sequence

from inference.messages import ChatMessage
from inference.replica_state import ReplicaState
from inference.tgi.errors import ModelServerError

_COUNT_SECONDS = 2.0


async def tokens_of(state: ReplicaState, prompt: Sequence[ChatMessage]) -> int | None:
    """Return how many tokens a prompt has; `None` where the server does not say so soon."""
    try:
        async with asyncio.timeout(_COUNT_SECONDS):
            return await state.server.count_tokens(prompt)
    except (ModelServerError, TimeoutError):
        return None


async def tokens_decoded_by_others(states: Sequence[ReplicaState], prompt: tuple[ChatMessage, ...], text: str) -> int:
    """Return about how many tokens were decoded for what there is of an answer to a prompt."""
    for state in states:
        whole = await tokens_of(state, _continued(prompt, text))
        if whole is not None:
            return max(0, whole - (await tokens_of(state, prompt) or 0))
    return 0


def _continued(prompt: tuple[ChatMessage, ...], text: str) -> tuple[ChatMessage, ...]:
    if prompt and prompt[-1].role == "assistant":
        *prompt_before, partial = prompt
        return (*prompt_before, ChatMessage("assistant", partial.content + text))
    return (*prompt, ChatMessage("assistant", text))
