"""One TGI server, as the rest of the product sees it."""

from collections.abc import AsyncGenerator, Sequence

import aiohttp
from text_generation import AsyncClient

from inference.events import StreamEvent
from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.model_server import ServerInfo
from inference.server_load import ServerLoad
from inference.server_words import believed_limit, believed_name
from inference.tgi.answer import Dialect, stream_answer
from inference.tgi.errors import Misbehaved
from inference.tgi.token_lists import count_of_prompt, count_of_text
from inference.tgi.transport import (
    DEFAULT_TIMEOUTS,
    LARGEST_INFO_BYTES,
    Timeouts,
    Transport,
    model_session,
)
from inference.watch import Watch

__all__ = ["TGIClient", "Timeouts", "model_session"]

_DIALECT = Dialect(has_a_token_per_delta=True, writes_stop_strings=True, trims_a_partial_answer=True)


class TGIClient(AsyncClient):  # type: ignore[misc]  # the package is untyped
    """Chats with a TGI server, 1.x to 3.3, over a session that the caller owns.

    The base class's own requests still work, but open a session each; chat streams are read here, because it can read
    those of no TGI since 2.2.
    """

    def __init__(
        self,
        base_url: str,
        *,
        session: aiohttp.ClientSession,
        api_key: str | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        super().__init__(base_url.rstrip("/"), headers={"Authorization": f"Bearer {api_key}"} if api_key else None)
        self.timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect_seconds, sock_read=timeouts.read_seconds
        )
        self._transport = Transport(base_url, session=session, api_key=api_key, timeouts=timeouts)

    def stream_chat(self, request: ChatRequest, watch: Watch | None = None) -> AsyncGenerator[StreamEvent]:
        """See `ModelServer`. Stop strings, which TGI leaves in its text, are cut off."""
        return stream_answer(
            self._transport, "/v1/chat/completions", _chat_body(request), request=request, dialect=_DIALECT, watch=watch
        )

    async def is_healthy(self) -> bool:
        """See `ModelServer`. During a long prefill TGI may answer late, so one failure alone says little."""
        return await self._transport.is_healthy()

    async def load(self) -> ServerLoad | None:
        """See `ModelServer`."""
        return await self._transport.load()

    async def info(self, wanted_id: str = "") -> ServerInfo:
        """See `ModelServer`; this one runs just one model."""
        answer = await self._transport.call_json("GET", "/info", limit_bytes=LARGEST_INFO_BYTES)
        model_id = believed_name(answer.get("model_id"))
        if model_id is None:
            raise Misbehaved("/info does not name the model")
        return ServerInfo(
            model_id=model_id,
            model_sha=believed_name(answer.get("model_sha")),
            version=believed_name(answer.get("version")),
            # Before 2.2 the limit had another name.
            max_input_tokens=believed_limit(answer.get("max_input_tokens"))
            or believed_limit(answer.get("max_input_length")),
            max_total_tokens=believed_limit(answer.get("max_total_tokens")),
            max_concurrent_requests=believed_limit(answer.get("max_concurrent_requests")),
        )

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """See `ModelServer`."""
        answer = await self._transport.call("POST", "/chat_tokenize", {"messages": messages_body(messages)})
        return count_of_prompt(answer)

    async def count_text(self, text: str) -> int:
        """See `ModelServer`. A slow (Python) tokenizer does not show what it adds; then that is counted too."""
        if not text:
            return 0
        return count_of_text(await self._transport.call("POST", "/tokenize", {"inputs": text}))


def messages_body(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    """Messages as every server's chat route takes them."""
    return [{"role": message.role, "content": message.content} for message in messages]


def sampling_body(options: SamplingOptions) -> dict[str, object]:
    """Only what is set: TGI refuses some nulls, `top_p` 1, and reads a `presence_penalty` of 0 as a strong penalty."""
    body: dict[str, object] = {"max_tokens": options.max_new_tokens}
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.top_p is not None and options.top_p < 1:
        body["top_p"] = options.top_p
    if options.seed is not None:
        body["seed"] = options.seed
    if options.stop:
        body["stop"] = list(options.stop)
    return body


def _chat_body(request: ChatRequest) -> dict[str, object]:
    """Without a `model`: TGI would take it for the name of a LoRA adapter."""
    return {
        "messages": messages_body(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampling_body(request.options),
    }
